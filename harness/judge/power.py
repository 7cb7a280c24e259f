"""Power: the proof that an output could have shown a difference, once per case on the baseline.

Movements are multiples of the case's own tolerance.

A model that ignores its input agrees with itself under every configuration. A case counts only
when its output moves by at least 100 reordered tolerances as its input is perturbed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.judge.bounds import Bounds
from harness.judge.metrics import row_errors
from harness.judge.output import Output, Outputs
from harness.judge.subject import Subject
from harness.judge.tolerance import power_factor
from harness.record import Measurement, PowerRecord, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """One prompt's output after one change to its input."""

    name: str
    """Say what was changed, e.g. `first chunk`."""
    prompt: int
    token: int
    """Index of the first token that changed, counted in the prompt's own tokens."""
    output: Output


def _movements(
    subject: Subject, before: Output, change: Perturbation, tolerance: float, *, causal: bool
) -> list[Measurement]:
    where = f"prompt {change.prompt}, {change.name}"
    if before.shape != change.output.shape:
        raise ValueError(
            f"{where}: a perturbation keeps the output's shape, expected {before.shape}, got "
            f"{change.output.shape}; replace tokens, do not add or remove any"
        )
    rows = row_errors(subject.kind, change.output, before) / tolerance
    factor = power_factor(subject.dtype)
    why = f"one tolerance of the bucket is {subject.kind.metric} {tolerance:.3g}"

    def movement(value: float, bound: float, which: str = "") -> Measurement:
        name = f"{where}{which}"
        return Measurement(metric=name, value=value, bound=bound, unit="tolerances", why=why)

    if not subject.kind.token_level:
        # One number may land near its old value by chance: see `power`.
        return [movement(float(np.max(rows, initial=0.0)), factor if subject.kind.vector else 1.0)]
    # Rows before the changed token cannot see it in a causal model. Of those that can, the typical
    # one has to move plainly and none may stand still, or an error there would go unseen.
    seen = rows[change.token :] if causal else rows
    if seen.size == 0:
        return [movement(0.0, factor)]
    return [
        movement(float(np.median(seen)), factor, ", median row"),
        movement(float(np.min(seen)), 1.0, ", stillest row"),
    ]


def _moved(movement: Measurement) -> bool:
    """NaN and infinity are broken outputs, not movement."""
    bound = 0.0 if movement.bound is None else movement.bound
    return math.isfinite(movement.value) and movement.value > bound


def power(
    subject: Subject,
    baseline: Outputs,
    perturbations: Sequence[Perturbation],
    bounds: Bounds,
    *,
    causal: bool,
) -> PowerRecord:
    """Whether every perturbation moved its prompt's output enough; none at all is blind.

    A vector has to move plainly each time. A single number is drawn anew each time, and may land
    within 100 tolerances of where it was: 4 of 15 score cases of three prompts had one such among
    their nine movements, most of which were of 10,000. So the largest movement of each prompt has
    to be plain, and none may stand still.
    """
    movements = [
        measurement
        for change in perturbations
        for measurement in _movements(
            subject,
            baseline[change.prompt],
            change,
            bounds.bound(Tier.REORDERED, subject.key(change.prompt)).oracle,
            causal=causal,
        )
    ]
    if not subject.kind.token_level and not subject.kind.vector:
        movements += _largest(movements, perturbations, power_factor(subject.dtype))
    return PowerRecord(
        case_id=subject.case_id,
        checkpoint=subject.checkpoint,
        movements=tuple(movements),
        blind=not movements or not all(_moved(m) for m in movements),
    )


def _largest(
    movements: Sequence[Measurement], perturbations: Sequence[Perturbation], factor: float
) -> list[Measurement]:
    """Each prompt's plainest movement; one movement a perturbation, in order."""
    by_prompt: dict[int, list[Measurement]] = {}
    for change, movement in zip(perturbations, movements, strict=True):
        by_prompt.setdefault(change.prompt, []).append(movement)
    return [
        replace(
            max(found, key=lambda m: -1.0 if math.isnan(m.value) else m.value),
            metric=f"prompt {prompt}, plainest of {len(found)}",
            bound=factor,
        )
        for prompt, found in by_prompt.items()
    ]
