"""A scenario as a run tells it: the words come with the run, every figure is counted in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import Comparison, Outcome, PairRecord, StoryInfo
from reports.load import Run
from reports.view.findings import FindingView
from reports.view.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """One way of running, against the plainest; `values` none: that one, against float64."""

    values: tuple[str, ...]
    compared: int
    failed: int
    """By what was computed, which is what a user's suite would see."""
    raced: int
    """Only by the check of buffer accesses: the answers agree."""

    @property
    def name(self) -> str:
        return " AND ".join(self.values) or "nothing switched on, against float64"

    @property
    def result(self) -> str:
        if not self.compared:
            return "never compared"
        told = f"passes: {plural(self.compared, 'comparison')}, none fails"
        if self.failed:
            verb = "fails" if self.compared == 1 else "fail"
            told = f"{self.failed:,} of {plural(self.compared, 'comparison')} {verb}"
        elif self.raced:
            told = f"answers agree in {plural(self.compared, 'comparison')}"
        raced = f"; in {self.raced:,} only the check of buffer accesses fails"
        return told + (raced if self.raced else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    info: StoryInfo
    plants: tuple[str, ...]
    corners: tuple[Corner, ...]
    """On the device on which the finding holds: float64, each switch alone, then together."""
    overlooked: str
    """What a suite saw that looks at one corner at a time; empty where it would have seen it."""
    finding: FindingView | None
    """Leads: a baseline that is itself wrong, else the one that needs the most switches, which is
    the hardest to see; None: not seen."""
    others: int
    """Further findings of the run, all in its report."""


def story(run: Run, found: Sequence[FindingView]) -> Story | None:
    """None for a run that tells none. `found`: the run's findings, worst first."""
    info = run.manifest.story
    if info is None:
        return None
    lead = max(
        found, key=lambda f: (not any(f.sets), max(map(len, f.sets), default=0)), default=None
    )
    corners = tuple(_corners(run, lead))
    return Story(
        info=info,
        plants=tuple(map(str, run.manifest.plants)),
        corners=corners,
        overlooked=_overlooked(corners),
        finding=lead,
        others=max(0, len(found) - 1),
    )


def _corners(run: Run, lead: FindingView | None) -> list[Corner]:
    baselines = {axis.name: axis.baseline for axis in run.manifest.axes}
    pairs = [p for p in _alike(run, lead) if p.outcome is not Outcome.INAPPLICABLE]
    groups: dict[tuple[str, ...], list[PairRecord]] = {
        (): [p for p in pairs if p.comparison is Comparison.ORACLE]
    }
    for pair in pairs:
        if pair.comparison is Comparison.BASELINE:
            groups.setdefault(_switched(pair.cell_b, baselines), []).append(pair)
    return [
        Corner(
            values=values,
            compared=len(own),
            failed=sum(p.outcome is Outcome.FAIL and not _raced_only(p) for p in own),
            raced=sum(p.outcome is Outcome.FAIL and _raced_only(p) for p in own),
        )
        for values, own in sorted(groups.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def _alike(run: Run, lead: FindingView | None) -> list[PairRecord]:
    """Comparisons of the finding's kind of task, on the devices on which it was seen."""
    record = next((f for f in run.findings if lead and f.finding_id == lead.finding_id), None)
    if record is None:
        return list(run.pairs)
    own = [p for p in run.pairs if p.pair_id in set(record.pairs)]
    settings = [p.settings for p in own]
    tasks = {p.task for p in own}
    return [p for p in run.pairs if p.settings in settings and p.task in tasks]


def _raced_only(pair: PairRecord) -> bool:
    """Whether all that is wrong are accesses to a buffer that nothing orders."""
    return "happens-before" in pair.reason and not any(m.exceeded for m in pair.measurements)


def _switched(cell: Mapping[str, str], baselines: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{n}={v}" for n, v in cell.items() if n in baselines and v != baselines[n])


def _overlooked(corners: Sequence[Corner]) -> str:
    reference = [c for c in corners if not c.values]
    alone = [c for c in corners if len(c.values) == 1 and c.compared]
    together = [c for c in corners if len(c.values) > 1]
    if alone and not any(c.failed for c in (*reference, *alone)):
        if not any(c.failed for c in together):
            return ""
        told = "Each switch alone passes, and so does the plainest way: only together they fail."
        if any(c.raced for c in alone):
            return (
                "Each switch alone gives right answers, and so does the plainest way: only "
                "together they fail. The check of buffer accesses, which no suite of answers has, "
                "sees it with one switch already."
            )
        return told
    if any(c.failed for c in reference) and not any(c.failed for c in (*alone, *together)):
        return "All ways of running agree with each other: only the reference tells."
    return ""
