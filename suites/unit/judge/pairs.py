"""A small judged world: one case, its float64 truth, honest runs of it and a way to judge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.axes import Cell, baseline
from harness.case import Case, Prompt
from harness.judge import (
    Bounds,
    Calibration,
    Execution,
    OracleErrors,
    Output,
    Perturbation,
    Subject,
    judge_pair,
    power,
)
from harness.record import Comparison, Outcome, PairRecord, PowerRecord
from suites.unit.axes.witnesses import LENGTHS, honest, plan_of

WIDTH = 24
BASE = baseline()
ASYNC, PP, CHUNK, COMPILE = (
    Cell.parse(text) for text in ("async=async", "pp=2", "chunk=chunked", "compile=compiled")
)
ROUNDING = 5e-7
"""Relative size of the rounding errors of the runs here, in float32."""


def fails(record: PairRecord, text: str) -> None:
    """The verdict is FAIL, for this reason."""
    assert record.outcome is Outcome.FAIL, record
    assert text in record.reason


def case_of(task: str, **parameters: Any) -> Case:
    """Five distinct prompts of LENGTHS."""
    prompts = tuple(Prompt(tokens=tuple(range(10 * i, 10 * i + n))) for i, n in enumerate(LENGTHS))
    return Case(task=task, prompts=prompts, **parameters)


def truth_of(task: str, *, unit: bool = False, seed: int = 0) -> list[Output]:
    """float64 outputs of every prompt."""
    generator = np.random.default_rng(seed)
    found = []
    for length in LENGTHS:
        shape = {
            "embed": (WIDTH,),
            "token_embed": (length, WIDTH),
            "token_classify": (length, 2),
        }.get(task, (1,))
        values = generator.standard_normal(shape)
        if unit:
            values /= np.linalg.norm(values, axis=-1, keepdims=True)
        found.append(Output.of(values))
    return found


def rounded(
    truth: Sequence[Output], *, size: float = ROUNDING, seed: int = 1, dtype: str = "float32"
) -> tuple[Output, ...]:
    """The truth with errors of a relative size in the Euclidean norm of each row."""
    generator = np.random.default_rng(seed)
    found = []
    for output in truth:
        values = output.float64
        noise = generator.standard_normal(values.shape)
        scale = np.linalg.norm(values, axis=-1, keepdims=True)
        noise *= size * scale / np.linalg.norm(noise, axis=-1, keepdims=True)
        found.append(Output.of((values + noise).astype(dtype)))
    return tuple(found)


def run(cell: Cell, outputs: Sequence[Output], name: str = "", **changes: Any) -> Execution:
    """An honest execution in a cell; `changes` replaces fields of it."""
    fields: dict[str, Any] = {
        "execution_id": name or str(cell),
        "cell": cell,
        "settings": {"executor": "inline", "inputs": "fenced"},
        "outputs": tuple(outputs),
        "witness": honest(cell),
        "plan": plan_of(cell),
        **changes,
    }
    return Execution(**fields)


def edited(outputs: Sequence[Output], prompt: int, values: Any) -> tuple[Output, ...]:
    """The outputs with one of them replaced by other values of the same dtype."""
    new = Output.of(np.asarray(values, dtype=outputs[prompt].data.dtype))
    return (*outputs[:prompt], new, *outputs[prompt + 1 :])


@dataclass(frozen=True, kw_only=True)
class World:
    """A case, its truth, its baseline and the bounds that this baseline gives."""

    subject: Subject
    truth: list[Output]
    base: tuple[Output, ...]
    bounds: Bounds
    power: PowerRecord

    @classmethod
    def of(cls, task: str = "embed", dtype: str = "float32", **parameters: Any) -> World:
        """A world whose model is not blind."""
        case = case_of(task, **parameters)
        subject = Subject.of(case, checkpoint="sample", dtype=dtype, lengths=LENGTHS)
        truth = truth_of(task, unit=bool(case.normalize))
        base = rounded(truth)
        errors = OracleErrors()
        errors.observe(subject, base, truth)
        bounds = Bounds(errors=errors, calibration=Calibration({}))
        moved = rounded(truth, size=0.5, seed=3)
        proof = power(
            subject,
            base,
            [Perturbation(name="first token replaced", prompt=0, token=0, output=moved[0])],
            bounds,
            causal=True,
        )
        assert not proof.blind
        return cls(subject=subject, truth=truth, base=base, bounds=bounds, power=proof)

    def judge(
        self,
        b: Execution,
        a: Execution | None = None,
        comparison: Comparison = Comparison.BASELINE,
        **changes: Any,
    ) -> PairRecord:
        """Judge `b` against `a`, by default the baseline."""
        options: dict[str, Any] = {
            "oracle": self.truth,
            "power": self.power,
            "bounds": self.bounds,
            **changes,
        }
        reference = a or run(BASE, self.base)
        return judge_pair(self.subject, reference, b, comparison=comparison, **options)


def measured(record: PairRecord) -> Mapping[str, float]:
    """Measurements of a pair by name."""
    return {m.metric: m.value for m in record.measurements}
