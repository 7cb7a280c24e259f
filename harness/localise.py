"""Localisation: the first (step, chunk, layer, token) at which two runs of a case differ.

Hidden states are compared row by row at the same absolute token position, whatever steps and
stages they were computed in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.axes import Plan
from harness.judge.metrics import relative_l2
from harness.judge.output import Float64, Output
from harness.record import Divergence
from harness.systems.base import SystemRun, TapRows

NOISE_FACTOR = 100.0
"""A row diverges when it is this many times further off than rows of a pair that is known good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Localisation:
    """Where two runs part, and how far apart their rows are."""

    first: Divergence | None
    token_errors: tuple[tuple[float, ...], ...]
    """Per prompt, relative L2 of each token's row at the last layer both runs have."""
    chunk_edges: tuple[tuple[int, ...], ...]
    """Per prompt, the tokens at which its later chunks begin in the second run."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One token's hidden state after one layer, and when it was computed."""

    values: Float64
    step: int
    chunk: int


_Layers = Mapping[tuple[int, int], Mapping[int, _Row]]
"""(prompt, layer) -> token -> row"""


def localise(a: SystemRun, b: SystemRun, *, threshold: float) -> Localisation:
    """Compare run `b` with the reference `a`; both must have been made with taps.

    `threshold`: relative L2 above which a row diverges; 0 means that any differing bit does.
    """
    left, right = _aligned(a.taps), _aligned(b.taps)
    first = _first_hidden(left, right, threshold)
    pooled = first is None
    if first is None:
        first = _first_pooled(a.outputs, b, _num_layers(left), threshold)
    errors = _output_errors(a, b) if pooled else ()
    return Localisation(
        first=first,
        token_errors=errors or _last_layer_errors(left, right, len(a.outputs)),
        chunk_edges=chunk_edges(b.plan, len(b.outputs)),
    )


def noise(a: SystemRun, b: SystemRun) -> float:
    """Median relative L2 of the rows of two runs that are known to agree."""
    left, right = _aligned(a.taps), _aligned(b.taps)
    apart = [
        _distance(row.values, right[key][token].values)
        for key, rows in left.items()
        for token, row in rows.items()
        if token in right.get(key, {})
    ]
    return float(np.median(apart)) if apart else 0.0


def chunk_edges(plan: Plan, num_prompts: int) -> tuple[tuple[int, ...], ...]:
    """Per prompt, where a chunk other than its first begins."""
    starts: dict[str, set[int]] = defaultdict(set)
    for step in plan:
        for request, start, _, _ in step:
            starts[str(request)].add(int(start))
    return tuple(tuple(sorted(starts[str(i)] - {0})) for i in range(num_prompts))


def _aligned(taps: Sequence[TapRows]) -> _Layers:
    steps: dict[int, list[int]] = defaultdict(list)
    for tap in taps:
        if tap.step not in steps[tap.prompt]:
            steps[tap.prompt].append(tap.step)
    chunk = {
        prompt: {step: index for index, step in enumerate(sorted(found))}
        for prompt, found in steps.items()
    }
    rows: dict[tuple[int, int], dict[int, _Row]] = defaultdict(dict)
    for tap in sorted(taps, key=lambda t: t.step):
        for offset, values in enumerate(tap.rows):
            rows[tap.prompt, tap.layer][tap.start + offset] = _Row(
                np.asarray(values, dtype=np.float64), tap.step, chunk[tap.prompt][tap.step]
            )
    return rows


def _num_layers(layers: _Layers) -> int:
    return max((layer for _, layer in layers), default=0)


def _distance(value: Float64, reference: Float64) -> float:
    """NaN counts as infinitely far; a bit that differs at no distance as the least number."""
    found = float(relative_l2(value, reference))
    if found == 0.0 and value.tobytes() != reference.tobytes():
        return float(np.nextafter(0.0, 1.0))
    return found if found == found else float("inf")


def _first_hidden(left: _Layers, right: _Layers, threshold: float) -> Divergence | None:
    """Earliest step of `right` first, then the lowest layer, then the first token."""
    found = [
        Divergence(
            prompt=prompt,
            step=row.step,
            chunk=row.chunk,
            layer=layer,
            token=token,
            relative_l2=apart,
        )
        for (prompt, layer), rows in right.items()
        for token, row in rows.items()
        if token in left.get((prompt, layer), {})
        and (apart := _distance(row.values, left[prompt, layer][token].values)) > threshold
    ]
    return min(found, key=lambda d: (d.step, d.layer, d.prompt, d.token), default=None)


def _first_pooled(
    reference: Sequence[Output], run: SystemRun, num_layers: int, threshold: float
) -> Divergence | None:
    """The first answer that differs although every hidden state agreed."""
    found = []
    for prompt, (x, y) in enumerate(zip(reference, run.outputs, strict=True)):
        if x.shape != y.shape:
            continue
        steps = _steps(run.plan, prompt)
        total = _total(run.plan, prompt)
        for row, (a, b) in enumerate(zip(x.rows, y.rows, strict=True)):
            apart = _distance(b, a)
            if apart > threshold:
                token = row if len(x.rows) == total else max(total - 1, 0)
                found.append(
                    Divergence(
                        prompt=prompt,
                        step=steps[-1] if steps else 0,
                        chunk=max(len(steps) - 1, 0),
                        layer=num_layers + 1,
                        token=token,
                        relative_l2=apart,
                    )
                )
                break
    return min(found, key=lambda d: (d.step, d.prompt), default=None)


def _steps(plan: Plan, prompt: int) -> list[int]:
    return [
        index
        for index, step in enumerate(plan)
        if any(str(entry[0]) == str(prompt) for entry in step)
    ]


def _total(plan: Plan, prompt: int) -> int:
    totals = [int(e[3]) for step in plan for e in step if str(e[0]) == str(prompt)]
    return max(totals, default=0)


def _last_layer_errors(
    left: _Layers, right: _Layers, num_prompts: int
) -> tuple[tuple[float, ...], ...]:
    errors: list[tuple[float, ...]] = []
    for prompt in range(num_prompts):
        layers = [layer for p, layer in left if p == prompt and (p, layer) in right]
        if not layers:
            errors.append(())
            continue
        x, y = left[prompt, max(layers)], right[prompt, max(layers)]
        errors.append(tuple(_distance(y[t].values, x[t].values) for t in sorted(x) if t in y))
    return tuple(errors)


def _output_errors(a: SystemRun, b: SystemRun) -> tuple[tuple[float, ...], ...]:
    """The rows of token-level answers; nothing when an answer is one row of a longer prompt."""
    totals = [_total(b.plan, prompt) for prompt in range(len(b.outputs))]
    rows = [len(x.rows) for x in a.outputs]
    if rows != totals or any(x.shape != y.shape for x, y in zip(a.outputs, b.outputs, strict=True)):
        return ()
    return tuple(
        tuple(_distance(v, u) for u, v in zip(x.rows, y.rows, strict=True))
        for x, y in zip(a.outputs, b.outputs, strict=True)
    )
