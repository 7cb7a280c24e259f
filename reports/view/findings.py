"""What differs: each finding, worst first, and failures that no finding covers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import NO_LAYER, FindingRecord, Outcome, PairRecord
from reports.load import Run
from reports.view.conditions import Conditions, conditions
from reports.view.evidence import MeasureRow, measure_row, oracle, sides, ulps, worst_pair
from reports.view.hiding import Hidden, hidden
from reports.view.looks import LOOKS, SEVERITY, Look, state_of
from reports.view.margins import COUNTED, severity
from reports.view.prompts import PromptView, agreement, prompt_views
from reports.view.text import number, plain, plural, quantity, share_of_bound, shortened

MAX_PROMPTS = 8
MAX_SCRIPT_CHARACTERS = 40_000


CauseKey = tuple[str, ...]


def cause_of(finding: FindingRecord) -> CauseKey:
    """Checkpoint, kind, minimal sets, and the layer and chunk of the first difference.

    A finding that was not localised is alone with those of its kind and sets.
    """
    kind = re.search(r"\bkind=([^;]*)", finding.signature)
    first = finding.first_divergence
    place = "" if first is None else f"layer {first.layer}, chunk {first.chunk}"
    sets = sorted("&".join(sorted(map(str, s))) for s in finding.minimal_sets)
    return finding.checkpoint, kind[1] if kind else finding.metric, "|".join(sets), place


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
    tasks: str
    """Of all its comparisons, the shrunk case's first."""
    policy: str
    """Stream policy of its signature: `any` where it fails under all that were tried."""
    cause: CauseKey
    worst: str
    worst_where: str
    """Which case the worst value is of, as far as the truth table tells."""
    share: str
    also: tuple[str, ...]
    """What else is wrong that allows nothing: `rank changed (0 allowed) in 24 comparisons`."""
    sets: tuple[tuple[str, ...], ...]
    fails_when: str
    order: str
    hidden: Hidden
    conditions: Conditions
    divergence: str
    axes: tuple[str, ...]
    truth: tuple[TruthLine, ...]
    measures: tuple[MeasureRow, ...]
    measured_case: str
    """The case, in its original size, that `measures` are of."""
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
    baseline = {axis.name: axis.baseline for axis in run.manifest.axes}
    of_checkpoint: dict[str, list[PairRecord]] = {}
    for pair in run.pairs:
        of_checkpoint.setdefault(pair.checkpoint, []).append(pair)
    layers = {c.name: c.num_layers for c in run.manifest.checkpoints}
    return tuple(
        _view(
            finding,
            anchor,
            [pairs[i] for i in finding.pairs if i in pairs],
            layers.get(finding.checkpoint),
            hidden(finding, baseline, of_checkpoint.get(finding.checkpoint, [])),
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
    finding: FindingRecord,
    anchor: str,
    pairs: list[PairRecord],
    layers: int | None,
    masks: Hidden,
) -> FindingView:
    worst = worst_pair(pairs, finding.metric)
    measures = () if worst is None else worst.measurements
    unit = next((m.unit for m in measures if m.metric == finding.metric), "")
    bound = "" if finding.bound is None else f", bound {quantity(finding.bound, unit)}"
    prompts = prompt_views(finding)
    policy = re.search(r"\bpolicy=(.*)", finding.signature)
    return FindingView(
        anchor=anchor,
        finding_id=finding.finding_id,
        title=finding.title,
        look=LOOKS[state_of(finding.outcome)],
        checkpoint=finding.checkpoint,
        task=finding.task,
        tasks=", ".join(dict.fromkeys((finding.task, *(p.task for p in pairs)))),
        policy=policy[1] if policy else "",
        cause=cause_of(finding),
        worst=f"{finding.metric} {quantity(finding.worst, unit)}{bound}",
        worst_where=_where(finding),
        share=share_of_bound(finding.worst, finding.bound),
        also=_also(pairs, finding.metric),
        sets=tuple(tuple(map(str, s)) for s in finding.minimal_sets),
        fails_when=fails_when(finding.minimal_sets),
        order=_order(finding.minimal_sets),
        hidden=masks,
        conditions=conditions(
            finding.conditions, any_policy=policy is not None and policy[1] == "any"
        ),
        divergence=_divergence(finding, layers),
        axes=_axes(finding),
        truth=_truth(finding, unit),
        measures=tuple(measure_row(m) for m in measures),
        measured_case="" if worst is None else worst.case_id,
        prompts=tuple(prompts[:MAX_PROMPTS]),
        more_prompts=max(0, len(prompts) - MAX_PROMPTS),
        parameters=tuple(
            (key, plain(value)) for key, value in finding.case.items() if key != "prompts"
        ),
        num_pairs=len(finding.pairs),
        reproduce=finding.reproduce,
        script=shortened(finding.script, MAX_SCRIPT_CHARACTERS),
        signature=finding.signature,
        oracle="" if worst is None else oracle(measures, sides(worst)),
        ulps=ulps(pairs),
        compared_with=(
            None
            if worst is None
            else (finding.checkpoint, str(worst.tier), finding.task, finding.metric)
        ),
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


def _where(finding: FindingRecord) -> str:
    seen = [
        row.value
        for row in finding.truth_table
        if row.outcome is Outcome.FAIL and row.value is not None
    ]
    if not seen:
        return ""
    return "in the shrunk case" if finding.worst in seen else "in another case of the run"


def _also(pairs: Sequence[PairRecord], metric: str) -> tuple[str, ...]:
    counted = Counter(
        m.metric
        for pair in pairs
        for m in pair.measurements
        if m.exceeded and m.bound == 0 and m.metric in COUNTED and m.metric != metric
    )
    return tuple(
        f"{COUNTED[name]} (0 allowed) in {plural(n, 'comparison')}"
        for name, n in counted.most_common()
    )


def _divergence(finding: FindingRecord, layers: int | None) -> str:
    found = finding.first_divergence
    if found is None:
        return ""
    rest = agreement(finding, found.prompt)
    if found.layer == NO_LAYER:
        where = "in the answer (the system tells nothing of its layers)"
    elif found.layer == 0:
        where = "in the embedding output (layer 0)"
    elif layers is not None and found.layer == layers + 1:
        where = "in the pooled output, after the last layer"
    else:
        where = f"in the output of layer {found.layer}" + (f" of {layers}" if layers else "")
    return (
        f"Step {found.step}, chunk {found.chunk} of prompt {found.prompt} (counted from 0): "
        f"{where}, at token {found.token:,}. Relative L2 there: {number(found.relative_l2)}. "
        f"{rest or ('' if found.layer == NO_LAYER else 'Everything before agrees.')}"
    ).rstrip()


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
