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

    if subject.lengths[change.prompt] == 1 or not (subject.kind.token_level or subject.kind.vector):
        # One number, or the row of a lone token, may land near its old place: see `power`.
        return [movement(float(np.max(rows, initial=0.0)), 1.0)]
    if not subject.kind.token_level:
        return [movement(float(np.max(rows, initial=0.0)), factor)]
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

    So is the row of a lone token, which is all that the model sees. MiniLM tells single tokens
    barely apart: with 25 drawn others in place of each of six tokens, its row moved by 5.7e-4 to
    7.6e-4 (median) and 8.4e-4 to 1.2e-3 (largest), where 100 tolerances were 5.4e-4: whether one
    other token moves it plainly is the luck of the draw, not blindness.
    """
    moved = [
        (
            change,
            _movements(
                subject,
                baseline[change.prompt],
                change,
                bounds.bound(Tier.REORDERED, subject.key(change.prompt)).oracle,
                causal=causal,
            ),
        )
        for change in perturbations
    ]
    drawn = {
        change.prompt
        for change in perturbations
        if subject.lengths[change.prompt] == 1
        or not (subject.kind.token_level or subject.kind.vector)
    }
    movements = [m for change, found in moved for m in found]
    movements += _largest(
        [(c, found[0]) for c, found in moved if c.prompt in drawn], power_factor(subject.dtype)
    )
    return PowerRecord(
        case_id=subject.case_id,
        checkpoint=subject.checkpoint,
        movements=tuple(movements),
        blind=not movements or not all(_moved(m) for m in movements),
    )


def _largest(
    movements: Sequence[tuple[Perturbation, Measurement]], factor: float
) -> list[Measurement]:
    """Each prompt's plainest movement."""
    by_prompt: dict[int, list[Measurement]] = {}
    for change, movement in movements:
        by_prompt.setdefault(change.prompt, []).append(movement)
    return [
        replace(
            max(found, key=lambda m: -1.0 if math.isnan(m.value) else m.value),
            metric=f"prompt {prompt}, plainest of {len(found)}",
            bound=factor,
        )
        for prompt, found in by_prompt.items()
    ]
