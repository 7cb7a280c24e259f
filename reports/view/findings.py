"""What differs: each finding, worst first, and failures that no finding covers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Divergence, FindingRecord, Outcome, PairRecord
from reports.load import Run
from reports.view.evidence import MeasureRow, measure_row, oracle, ulps, worst_pair
from reports.view.looks import LOOKS, SEVERITY, Look, state_of
from reports.view.margins import severity
from reports.view.prompts import PromptView, prompt_views
from reports.view.text import number, plain, quantity, share_of_bound, shortened

MAX_PROMPTS = 8
MAX_SCRIPT_CHARACTERS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthLine:
    """One cell of the truth table; `marked` says which values belong to a minimal failing set."""

    values: tuple[str, ...]
    marked: tuple[bool, ...]
    look: Look
    value: str
    note: str


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
    oracle: str
    """Which side float64 is nearer to, and by how much; empty where it was not asked."""
    ulps: tuple[tuple[str, int], ...]
    """Distance in ulp -> elements, of the worst comparison that must be exact."""
    compared_with: tuple[str, str, str, str] | None
    """Which of the noise histograms shows its metric: checkpoint, tier, task, metric."""


def findings(run: Run) -> tuple[FindingView, ...]:
    """Worst first: by outcome, then by how far over its bound."""
    pairs = {pair.pair_id: pair for pair in run.pairs}
    layers = {c.name: c.num_layers for c in run.manifest.checkpoints}
    return tuple(
        _view(
            finding,
            anchor,
            [pairs[i] for i in finding.pairs if i in pairs],
            layers.get(finding.checkpoint),
        )
        for finding, anchor in _anchored(run)
    )


def _anchored(run: Run) -> list[tuple[FindingRecord, str]]:
    found: dict[str, FindingRecord] = {}
    ordered = sorted(
        run.findings,
        key=lambda f: (
            SEVERITY.index(state_of(f.outcome)),
            -severity(f.worst, f.bound),
            f.finding_id,
        ),
    )
    for finding in ordered:
        anchor = "finding-" + re.sub(r"[^A-Za-z0-9_-]", "-", finding.finding_id)
        while anchor in found:
            anchor += "-again"
        found[anchor] = finding
    return [(finding, anchor) for anchor, finding in found.items()]


def _view(
    finding: FindingRecord, anchor: str, pairs: list[PairRecord], layers: int | None
) -> FindingView:
    worst = worst_pair(pairs, finding.metric)
    measures = () if worst is None else worst.measurements
    unit = next((m.unit for m in measures if m.metric == finding.metric), "")
    bound = "" if finding.bound is None else f", bound {quantity(finding.bound, unit)}"
    prompts = prompt_views(finding)
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
        measures=tuple(measure_row(m) for m in measures),
        prompts=tuple(prompts[:MAX_PROMPTS]),
        more_prompts=max(0, len(prompts) - MAX_PROMPTS),
        parameters=tuple(
            (key, plain(value)) for key, value in finding.case.items() if key != "prompts"
        ),
        num_pairs=len(finding.pairs),
        reproduce=finding.reproduce,
        script=shortened(finding.script, MAX_SCRIPT_CHARACTERS),
        signature=finding.signature,
        oracle=oracle(measures),
        ulps=ulps(pairs),
        compared_with=(
            None
            if worst is None
            else (finding.checkpoint, str(worst.tier), finding.task, finding.metric)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Findings that fail under the same switches; where the worst of them stands."""

    fails_when: str
    anchor: str
    findings: int
    checkpoints: tuple[str, ...]
    worst: str
    share: str


def causes(found: Sequence[FindingView]) -> tuple[Cause, ...]:
    """In the order of the findings, which is worst first."""
    grouped: dict[str, list[FindingView]] = {}
    for finding in found:
        grouped.setdefault(finding.fails_when, []).append(finding)
    return tuple(
        Cause(
            fails_when=when,
            anchor=own[0].anchor,
            findings=len(own),
            checkpoints=tuple(dict.fromkeys(f.checkpoint for f in own)),
            worst=own[0].worst,
            share=own[0].share,
        )
        for when, own in grouped.items()
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
        f"Step {found.step}, chunk {found.chunk} of prompt {found.prompt} (counted from 0): "
        f"{where}, at token {found.token:,}. Relative L2 there: {number(found.relative_l2)}. "
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


def unexplained(run: Run) -> tuple[PairRecord, ...]:
    """FAIL pairs that no finding covers: the run ended before it could attribute them."""
    covered = {pair_id for finding in run.findings for pair_id in finding.pairs}
    return tuple(p for p in run.pairs if p.outcome is Outcome.FAIL and p.pair_id not in covered)
