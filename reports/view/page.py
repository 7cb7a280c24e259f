"""Everything a report says about one run, folded once; writers choose what to draw."""

from __future__ import annotations

from dataclasses import dataclass

from harness.record import DriftRecord, Outcome
from reports.load import Run
from reports.view.case_index import CaseIndex, case_index
from reports.view.changes import Changes
from reports.view.coverage import Coverage, coverage
from reports.view.declared import ReachedOfAll, reached_of_all
from reports.view.findings import FindingView, findings
from reports.view.grouping import Cause, FindingGroup, causes, grouped
from reports.view.kills import KillMatrix, kill_matrix
from reports.view.known import Known, known
from reports.view.lattice import Lattice, lattices
from reports.view.metrics import explained
from reports.view.noise import Noise, noise
from reports.view.proof import proof
from reports.view.reasons import Reasons, reasons_of, unexplained_failures, warnings
from reports.view.setup import Setup, setup
from reports.view.story import Story, story
from reports.view.trust import Trust, trust
from reports.view.verdict import Verdict, false_alarms, verdict

MAX_FINDINGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    verdict: Verdict
    proof: tuple[str, ...]
    """What the comparisons that agree show, a claim each."""
    changes: Changes | None
    """Against a baseline run, where one was given."""
    known: Known | None
    """What became of the ledger and the corpus, where there was any."""
    lattices: tuple[Lattice, ...]
    cases: CaseIndex
    kills: KillMatrix | None
    false_alarms: str
    findings: tuple[FindingView, ...]
    groups: tuple[FindingGroup, ...]
    """The same findings, those that look like one cause together."""
    causes: tuple[Cause, ...]
    more_findings: int
    unexplained: Reasons
    errors: Reasons
    vacuous: Reasons
    inapplicable: Reasons
    warnings: tuple[tuple[str, int], ...]
    coverage: Coverage
    reached: tuple[ReachedOfAll, ...]
    """How much of what was declared was judged; none where nothing was."""
    noise: Noise
    metrics: tuple[tuple[str, str], ...]
    """Name and meaning of what was measured."""
    leans: tuple[DriftRecord, ...]
    """Mean signed errors against their budget."""
    trust: Trust
    setup: Setup
    story: Story | None
    """Of a scenario; None of any other run."""


def build_page(run: Run, changes: Changes | None = None) -> Page:
    found = findings(run)
    groups = grouped(found[:MAX_FINDINGS])
    return Page(
        verdict=verdict(run),
        proof=proof(run),
        changes=changes,
        known=known(run),
        lattices=lattices(run),
        cases=case_index(run, {f.finding_id: f.anchor for f in reversed(found[:MAX_FINDINGS])}),
        kills=kill_matrix(run.kills),
        false_alarms=false_alarms(run),
        findings=tuple(f for group in groups for f in (group.lead, *group.variants)),
        groups=groups,
        causes=causes(groups, found[:MAX_FINDINGS]),
        more_findings=max(0, len(found) - MAX_FINDINGS),
        unexplained=unexplained_failures(run),
        errors=reasons_of(run, Outcome.ERROR),
        vacuous=reasons_of(run, Outcome.VACUOUS),
        inapplicable=reasons_of(run, Outcome.INAPPLICABLE),
        warnings=warnings(run),
        coverage=coverage(run),
        reached=reached_of_all(run),
        noise=noise(run),
        metrics=explained(run),
        leans=run.drifts,
        trust=trust(run),
        setup=setup(run),
        story=story(run, found),
    )
