"""Localisation: the first (step, chunk, layer, token) at which two runs of a case differ.

Hidden states are compared row by row at the same absolute token position, whatever steps and
stages they were computed in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.axes import Plan
from harness.judge.output import Output
from harness.record import NO_LAYER, Divergence
from harness.systems.base import SystemRun
from harness.tapped_rows import Layers, aligned, distance
from harness.token_profile import token_profile, total_tokens

NOISE_FACTOR = 100.0
"""A row diverges when it is this many times further off than rows of a pair that is known good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Localisation:
    """Where two runs part, and how far apart their rows are."""

    first: Divergence | None
    token_errors: tuple[tuple[float, ...], ...]
    """Per prompt, relative L2 of each token's row at the last layer both runs have."""
    token_cosines: tuple[tuple[float, ...], ...]
    """Per prompt, 1 - cosine of the same rows."""
    layer_errors: tuple[tuple[tuple[float, ...], ...], ...]
    """Per prompt and layer, relative L2 of each token's row."""
    chunk_edges: tuple[tuple[int, ...], ...]
    """Per prompt, the tokens at which its later chunks begin in the second run."""


def localise(a: SystemRun, b: SystemRun, *, threshold: float) -> Localisation:
    """Compare run `b` with the reference `a`; both must have been made with taps.

    `threshold`: relative L2 above which a row diverges; 0 means that any differing bit does.
    """
    left, right = aligned(a.taps), aligned(b.taps)
    first = _first_hidden(left, right, threshold)
    pooled = first is None
    if first is None:
        first = _first_pooled(a.outputs, b, _pooled(left), threshold)
    profile = token_profile(a, b, left, right, of_outputs=pooled)
    return Localisation(
        first=first,
        token_errors=profile.errors,
        token_cosines=profile.cosines,
        layer_errors=profile.layers,
        chunk_edges=chunk_edges(b.plan, len(b.outputs)),
    )


def noise(a: SystemRun, b: SystemRun) -> float:
    """Median relative L2 of the rows of two runs that are known to agree."""
    left, right = aligned(a.taps), aligned(b.taps)
    apart = [
        distance(row.values, right[key][token].values)
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


def _pooled(layers: Layers) -> int:
    """Number of the pooled output, after the last layer that is known."""
    return max(layer for _, layer in layers) + 1 if layers else NO_LAYER


def _first_hidden(left: Layers, right: Layers, threshold: float) -> Divergence | None:
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
        and (apart := distance(row.values, left[prompt, layer][token].values)) > threshold
    ]
    return min(found, key=lambda d: (d.step, d.layer, d.prompt, d.token), default=None)


def _first_pooled(
    reference: Sequence[Output], run: SystemRun, layer: int, threshold: float
) -> Divergence | None:
    """The first answer that differs although every hidden state agreed."""
    found = []
    for prompt, (x, y) in enumerate(zip(reference, run.outputs, strict=True)):
        if x.shape != y.shape:
            continue
        steps = _steps(run.plan, prompt)
        total = total_tokens(run.plan, prompt)
        for row, (a, b) in enumerate(zip(x.rows, y.rows, strict=True)):
            apart = distance(b, a)
            if apart > threshold:
                token = row if len(x.rows) == total else max(total - 1, 0)
                found.append(
                    Divergence(
                        prompt=prompt,
                        step=steps[-1] if steps else 0,
                        chunk=max(len(steps) - 1, 0),
                        layer=layer,
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
