"""Every generated family through every axis that it supports; what it does not, it refuses.

Each value of each axis alone (beside what it cannot act without), and any two values together in a
covering array, by the campaign's own executor and judge. What a family refuses is asked of it first
and met again at start-up, with the same reason.

Passes wrongly if a family refused nothing beforehand, so that no refusal was held to its reason.
Ruled out by suites/meta/test_suites_can_fail.py: `nothing-is-refused-beforehand`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

from harness.axes import ALL_AXES, Cell, Startable, baseline, coverage, covering, select
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import FENCED_COPY_LAGS, CheckpointPlan
from harness.campaign.reference import CaseReference
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import CHECKPOINTS, checkpoint, path_of
from harness.oracle.oracle import Oracle
from harness.record import Comparison, Outcome, PairRecord, Tier
from harness.systems.base import Refused
from harness.systems.engine import EngineOptions, EngineSystem
from suites.figures import show
from suites.parity.memory import prompt

pytestmark = pytest.mark.timeout(600)  # each family compiles its regions once

FAMILIES = [name for name in CHECKPOINTS if name.startswith("tiny-")]
CHUNK, LIMIT, STRENGTH = 16, 128, 2
LENGTHS = (70, 52, 44, 60, 35)
"""Prompts of several chunks and blocks, that begin alike, and do not fit a small pool together."""
AXES = select(ALL_AXES)


def prompts(seed: int) -> tuple[Prompt, ...]:
    """Of `LENGTHS`. No special tokens: RoBERTa gives its padding token no position."""
    return tuple(
        Prompt(tokens=tuple(max(token, 10) for token in prompt(n, seed + i, shared=34)))
        for i, n in enumerate(LENGTHS)
    )


CASES = (
    Case(task="embed", prompts=prompts(0)),
    Case(task="token_embed", prompts=prompts(0)[:3], normalize=False),
)
MEASURED = tuple(Case(task="embed", prompts=prompts(len(LENGTHS) * i)) for i in range(1, 16))
"""Run in the baseline only: a bound is a high quantile of its errors, not the largest of five."""


class Family:
    """Owns: one family's system, and what was judged of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._folder = name, folder
        self.system = EngineSystem(
            EngineOptions(
                model=path_of(name),
                chunk=CHUNK,
                max_num_seqs=2,
                max_model_len=LIMIT,
                long_prefill_token_threshold=CHUNK // 2,
            )
        )
        self.startable = Startable(AXES, self.system.refusal)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Each value alone, each axis' companions without it, and the covering array."""
        alone: list[Cell] = []
        for axis in AXES:
            near = Cell.of({**baseline(), **axis.beside})
            alone += [near, *(near.with_value(axis.name, value) for value in axis.values)]
        wanted = (baseline(), *alone, *covering(AXES, STRENGTH, self.startable))
        return tuple(dict.fromkeys(c for c in wanted if c in set(self.startable.cells)))

    @cached_property
    def pairs(self) -> list[PairRecord]:
        store = OutputStore(self._folder)
        reference = CaseReference(
            oracle=Oracle(path_of(self.name)), checkpoint=checkpoint(self.name)
        )
        executor = CaseExecutor(
            checkpoint=CheckpointPlan(
                name=self.name,
                cases=1,
                chunk=CHUNK,
                max_num_seqs=2,
                max_model_len=LIMIT,
                max_case_tokens=sum(LENGTHS),
            ),
            system=self.system,
            reference=reference,
            store=store,
            attempts=1,
        )
        records = [
            record
            for cases, cells in ((CASES, self.cells), (MEASURED, (baseline(),)))
            for case in cases
            for record in executor.run(case, FENCED_COPY_LAGS, cells=cells)
        ]
        judge = CheckpointJudge(
            dtype="float32", causal=self.system.is_causal, store=store, chunk=CHUNK
        )
        verdicts = judge.judge(executed(records)[self.name])
        return [record for record in verdicts if isinstance(record, PairRecord)]


EVERY_DAY = ("tiny-bert",)
"""The other families take three minutes together, and run at night."""


@pytest.fixture(
    scope="module",
    params=[
        name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.nightly)
        for name in FAMILIES
    ],
)
def family(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    found = Family(request.param, tmp_path_factory.mktemp(request.param))
    yield found
    found.system.close()


def test_every_supported_value_acts_and_passes(family: Family) -> None:
    outcomes = Counter(str(pair.outcome) for pair in family.pairs)
    told = coverage(family.cells, AXES, STRENGTH, family.startable)
    show(
        f"{family.name}: {told}",
        ("pairs", *Outcome),
        [(len(family.pairs), *(outcomes[outcome] for outcome in Outcome))],
    )
    assert {pair.outcome for pair in family.pairs} <= {Outcome.PASS, Outcome.INAPPLICABLE}, [
        (dict(p.cell_a), dict(p.cell_b), p.outcome, p.reason)
        for p in family.pairs
        if p.outcome not in (Outcome.PASS, Outcome.INAPPLICABLE)
    ]
    assert told.covered == told.possible
    passed: dict[tuple[str, str], set[Tier]] = {}
    for pair in family.pairs:
        if pair.comparison is Comparison.EDGE and pair.outcome is Outcome.PASS:
            (name,) = pair.axes
            for cell in (pair.cell_a, pair.cell_b):
                value = ALL_AXES[name].value(cell)
                passed.setdefault((name, value), set()).add(pair.tier)
    for axis in AXES:
        values = {value for value in axis.values if ((axis.name, value),) not in refused(family)}
        if len(values) == 1:
            continue  # nothing to compare its baseline with
        for value in values:
            assert passed.get((axis.name, value)), f"{axis.name}={value} passed on no edge"
            assert passed[axis.name, value] <= {axis.tier, Tier.EXACT}
    # Where two runs had the same rows, a recording is held to the bits of what it recorded.
    assert Tier.EXACT in passed["graph", "fitted"]


def refused(family: Family) -> dict[tuple[tuple[str, str], ...], str]:
    return dict(family.startable.refused)


def test_what_is_refused_is_refused_at_start_up_with_the_reason(family: Family) -> None:
    found = refused(family)
    show(
        f"{family.name}: refused",
        ("values", "reason"),
        [(", ".join(f"{n}={v}" for n, v in values), reason) for values, reason in found.items()],
    )
    assert found
    for values, reason in found.items():
        assert reason
        cell = Cell.of({**baseline(), **dict(values)})
        with pytest.raises(Refused) as raised:
            family.system.open(cell, FENCED_COPY_LAGS)
        assert str(raised.value) == family.system.refusal(cell)
