"""What differs: each finding, worst first, and failures that no finding covers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import (
    Divergence,
    FindingRecord,
    Json,
    Measurement,
    Outcome,
    PairRecord,
)
from reports.load import Run
from reports.view.looks import LOOKS, SEVERITY, Look, state_of
from reports.view.margins import severity
from reports.view.text import number, plain, plural, quantity, share_of_bound, shortened, visible

MAX_PROMPT_CHARACTERS = 600
MAX_PROMPTS = 8
MAX_SCRIPT_CHARACTERS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow:
    """One measurement of a finding's worst pair."""

    metric: str
    value: str
    bound: str
    share: str
    exceeded: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthLine:
    """One cell of the truth table; `marked` says which values belong to a minimal failing set."""

    values: tuple[str, ...]
    marked: tuple[bool, ...]
    look: Look
    value: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """One prompt of the shrunk case, and its error along the tokens where it is known."""

    index: int
    text: str
    errors: tuple[float, ...]
    """Relative L2 of each token row."""
    edges: tuple[int, ...]
    """Token positions at which a chunk begins."""
    diverges_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """One finding as every writer shows it."""

    anchor: str
    finding_id: str
    title: str
    look: Look
    checkpoint: str
    task: str
    worst: str
    share: str
    sets: tuple[tuple[str, ...], ...]
    fails_when: str
    order: str
    masked_by: tuple[str, ...]
    conditions: tuple[str, ...]
    divergence: str
    axes: tuple[str, ...]
    truth: tuple[TruthLine, ...]
    measures: tuple[MeasureRow, ...]
    prompts: tuple[PromptView, ...]
    more_prompts: int
    parameters: tuple[tuple[str, str], ...]
    num_pairs: int
    reproduce: str
    script: str
    signature: str


def findings(run: Run) -> tuple[FindingView, ...]:
    """Worst first: by outcome, then by how far over its bound."""
    pairs = {pair.pair_id: pair for pair in run.pairs}
    layers = {c.name: c.num_layers for c in run.manifest.checkpoints}
    ordered = sorted(
        run.findings,
        key=lambda f: (
            SEVERITY.index(state_of(f.outcome)),
            -severity(f.worst, f.bound),
            f.finding_id,
        ),
    )
    anchors: dict[str, None] = {}
    views = []
    for finding in ordered:
        anchor = "finding-" + re.sub(r"[^A-Za-z0-9_-]", "-", finding.finding_id)
        while anchor in anchors:
            anchor += "-again"
        anchors[anchor] = None
        own = [pairs[i] for i in finding.pairs if i in pairs]
        views.append(_view(finding, anchor, own, layers.get(finding.checkpoint)))
    return tuple(views)


def _view(
    finding: FindingRecord, anchor: str, pairs: list[PairRecord], layers: int | None
) -> FindingView:
    measures = _worst_measures(pairs, finding.metric)
    unit = next((m.unit for m in measures if m.metric == finding.metric), "")
    bound = "" if finding.bound is None else f", bound {quantity(finding.bound, unit)}"
    prompts = _prompts(finding)
    return FindingView(
        anchor=anchor,
        finding_id=finding.finding_id,
        title=finding.title,
        look=LOOKS[state_of(finding.outcome)],
        checkpoint=finding.checkpoint,
        task=finding.task,
        worst=f"{finding.metric} {quantity(finding.worst, unit)}{bound}",
        share=share_of_bound(finding.worst, finding.bound),
        sets=tuple(tuple(map(str, s)) for s in finding.minimal_sets),
        fails_when=fails_when(finding.minimal_sets),
        order=_order(finding.minimal_sets),
        masked_by=tuple(map(str, finding.masked_by)),
        conditions=tuple(map(str, finding.conditions)),
        divergence=_divergence(finding.first_divergence, layers),
        axes=_axes(finding),
        truth=_truth(finding, unit),
        measures=tuple(_row(m) for m in measures),
        prompts=tuple(prompts[:MAX_PROMPTS]),
        more_prompts=max(0, len(prompts) - MAX_PROMPTS),
        parameters=tuple(
            (key, plain(value)) for key, value in finding.case.items() if key != "prompts"
        ),
        num_pairs=len(finding.pairs),
        reproduce=finding.reproduce,
        script=shortened(finding.script, MAX_SCRIPT_CHARACTERS),
        signature=finding.signature,
    )


def fails_when(sets: Sequence[Sequence[str]]) -> str:
    """`Fails when chunk=chunked AND compile=compiled, or when pp=2.`"""
    if not sets:
        return "The switches that cause it are not known."
    if any(not s for s in sets):
        return "Fails whichever way it is run: the baseline fails too."
    return "Fails when " + ", or when ".join(" AND ".join(map(str, s)) for s in sets) + "."


def _order(sets: Sequence[Sequence[str]]) -> str:
    largest = max((len(s) for s in sets), default=0)
    if largest < 2:
        return ""
    return f"An interaction of {largest} switches: none of them fails alone."


def _divergence(found: Divergence | None, layers: int | None) -> str:
    if found is None:
        return ""
    if found.layer == 0:
        where = "in the embedding output (layer 0)"
    elif layers is not None and found.layer == layers + 1:
        where = "in the pooled output, after the last layer"
    else:
        where = f"in the output of layer {found.layer}" + (f" of {layers}" if layers else "")
    return (
        f"Step {found.step}, chunk {found.chunk} of prompt {found.prompt}: {where}, at token "
        f"{found.token:,}. Relative L2 there: {number(found.relative_l2)}. "
        "Everything before agrees."
    )


def _axes(finding: FindingRecord) -> tuple[str, ...]:
    return tuple(dict.fromkeys(axis for row in finding.truth_table for axis in row.cell))


def _truth(finding: FindingRecord, unit: str) -> tuple[TruthLine, ...]:
    axes = _axes(finding)
    lines = []
    for row in finding.truth_table:
        present = {f"{axis}={value}" for axis, value in row.cell.items()}
        marked = {item for s in finding.minimal_sets if set(s) <= present for item in s}
        lines.append(
            TruthLine(
                values=tuple(row.cell.get(axis, "") for axis in axes),
                marked=tuple(f"{axis}={row.cell.get(axis)}" in marked for axis in axes),
                look=LOOKS[state_of(row.outcome)],
                value="" if row.value is None else quantity(row.value, unit),
                note=row.note,
            )
        )
    return tuple(lines)


def _worst_measures(pairs: list[PairRecord], metric: str) -> tuple[Measurement, ...]:
    def how_bad(pair: PairRecord) -> float:
        return max(
            (severity(m.value, m.bound) for m in pair.measurements if m.metric == metric),
            default=-2.0,
        )

    return max(pairs, key=how_bad).measurements if pairs else ()


def _row(m: Measurement) -> MeasureRow:
    return MeasureRow(
        metric=m.metric,
        value=quantity(m.value, m.unit),
        bound="none: for information" if m.bound is None else quantity(m.bound, m.unit),
        share=share_of_bound(m.value, m.bound),
        exceeded=m.exceeded,
        why=m.why,
    )


def _prompts(finding: FindingRecord) -> list[PromptView]:
    recorded = finding.case.get("prompts")
    prompts: list[Json] = list(recorded) if isinstance(recorded, list | tuple) else []
    views = []
    for i in range(max(len(prompts), len(finding.token_errors))):
        errors = finding.token_errors[i] if i < len(finding.token_errors) else ()
        first = finding.first_divergence
        views.append(
            PromptView(
                index=i,
                text=_prompt_text(prompts[i]) if i < len(prompts) else "",
                errors=tuple(map(float, errors)),
                edges=finding.chunk_edges[i] if i < len(finding.chunk_edges) else (),
                diverges_at=first.token if first is not None and first.prompt == i else None,
            )
        )
    # The prompt with the largest error comes first; the rest keep their order.
    return sorted(views, key=lambda p: -_largest(p.errors))


def _largest(errors: Sequence[float]) -> float:
    return max((math.inf if math.isnan(e) else e for e in errors), default=-1.0)


def _prompt_text(prompt: Json) -> str:
    if isinstance(prompt, Mapping):
        if isinstance(prompt.get("tokens"), list | tuple):
            ids = [str(t) for t in prompt["tokens"]]
            text = f"{plural(len(ids), 'token id')}: {', '.join(ids)}"
        else:
            parts = [f"{key}: {plain(value)}" for key, value in prompt.items()]
            text = "\n".join(parts) if len(parts) > 1 else plain(next(iter(prompt.values()), ""))
    else:
        text = plain(prompt)
    return shortened(visible(text), MAX_PROMPT_CHARACTERS)


def unexplained(run: Run) -> tuple[PairRecord, ...]:
    """FAIL pairs that no finding covers: the run ended before it could attribute them."""
    covered = {pair_id for finding in run.findings for pair_id in finding.pairs}
    return tuple(p for p in run.pairs if p.outcome is Outcome.FAIL and p.pair_id not in covered)
