"""What changed between two runs: findings by signature, drift of the worst values, environment."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from harness.record import FindingRecord, Outcome
from reports.ledger import KnownFinding, State, standings
from reports.load import Run
from reports.view.drift import Drift, drift
from reports.view.margins import severity
from reports.view.setup_differences import COMMIT, Difference, differences
from reports.view.text import quantity


class Change(StrEnum):
    """How a failure stands against the baseline run, worst first."""

    NEW = "new"
    EXPIRED = "expired"
    """It was accepted once, and the last day on which it may fail has passed."""
    STILL = "still failing"
    FLAKY = "flaky"
    """It came and went although nothing recorded differs, or more than once."""
    FIXED = "fixed"
    UNSEEN = "not looked for"
    """The newer run could not have found it: it did not run the checkpoint or the switches."""


MEANINGS = {
    Change.NEW: "fails now and did not in the baseline run",
    Change.EXPIRED: "fails, and the day until which it was accepted has passed",
    Change.STILL: "fails in both runs",
    Change.FLAKY: "came and went although nothing recorded differs, or came and went repeatedly",
    Change.FIXED: "failed in the baseline run, was looked for again and does not fail",
    Change.UNSEEN: "failed in the baseline run, and this run could not have found it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFinding:
    """One failure over the runs that are compared."""

    change: Change
    title: str
    checkpoint: str
    signature: str
    """Without the stream policy: which policies show a failure depends on how long was searched."""
    before: str
    """Worst value in the baseline run; empty where it did not fail."""
    now: str
    ids: tuple[str, ...]
    seen: tuple[bool | None, ...]
    """Per run, oldest first: failed, did not, could not have been found."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """One of the compared runs, oldest first."""

    run_id: str
    created: str
    commit: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """`runs` ends with the baseline run and the run itself, as far as their times agree."""

    baseline: str
    run: str
    runs: tuple[RunName, ...]
    findings: tuple[ChangedFinding, ...]
    drift: tuple[Drift, ...]
    differences: tuple[Difference, ...]
    caution: str
    """Empty, or why the comparison says less than it seems to."""

    def count(self, change: Change) -> int:
        return sum(f.change is change for f in self.findings)

    @property
    def exit_code(self) -> int:
        """1 for anything new or expired, else 0."""
        return int(bool(self.count(Change.NEW) or self.count(Change.EXPIRED)))


def changes(
    run: Run,
    baseline: Run,
    *,
    history: Sequence[Run] = (),
    known: Sequence[KnownFinding] = (),
    today: date | None = None,
) -> Changes:
    """Compare `run` with `baseline`; `history` are other runs, whatever their order.

    `known`, `today`: the ledger of known findings, for those that have expired.
    """
    named = {r.manifest.run_id: r for r in (*history, baseline, run)}
    runs = sorted(named.values(), key=lambda r: (r.manifest.created, r is run))
    told = differences(baseline, run)
    # A commit need not touch what runs; the digests of code and weights say whether it did.
    same = all((d.kind, d.name) == COMMIT for d in told)
    expired = {
        identity(s.finding)
        for s in standings(run, known, today or date.min)
        if s.state is State.EXPIRED
    }
    compared = _Compared(run=run, baseline=baseline, runs=tuple(runs), same_setup=same)
    found = [compared.finding(key, expired=key in expired) for key in _identities(runs)]
    shown = [f for f in found if f is not None]
    order = list(Change)
    return Changes(
        baseline=baseline.manifest.run_id,
        run=run.manifest.run_id,
        runs=tuple(_name(r) for r in runs),
        findings=tuple(sorted(shown, key=lambda f: (order.index(f.change), f.title))),
        drift=drift(runs, run, baseline),
        differences=told,
        caution=_caution(run, baseline),
    )


def identity(finding: FindingRecord) -> str:
    """The signature without its stream policy."""
    return finding.signature.partition("; policy=")[0]


def _identities(runs: Sequence[Run]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(identity(f) for r in runs for f in r.findings))


def _of(run: Run, key: str) -> list[FindingRecord]:
    return [f for f in run.findings if identity(f) == key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """The runs, and whether anything that is recorded tells the two apart."""

    run: Run
    baseline: Run
    runs: tuple[Run, ...]
    same_setup: bool

    def finding(self, key: str, *, expired: bool) -> ChangedFinding | None:
        """None for a failure of earlier runs only."""
        now, before = _of(self.run, key), _of(self.baseline, key)
        if not now and not before:
            return None
        example = (now or before)[0]
        seen = tuple(_seen(r, key, example) for r in self.runs)
        change, note = self._change(key, example, seen)
        return ChangedFinding(
            change=Change.EXPIRED if expired else change,
            title=_title(now or before),
            checkpoint=example.checkpoint,
            signature=key,
            before=_worst(before),
            now=_worst(now),
            ids=tuple(dict.fromkeys(f.finding_id for f in (*now, *before))),
            seen=seen,
            note="" if expired else note,
        )

    def _change(
        self, key: str, example: FindingRecord, seen: Sequence[bool | None]
    ) -> tuple[Change, str]:
        now, before = _seen(self.run, key, example), _seen(self.baseline, key, example)
        if now is None:
            return Change.UNSEEN, ""
        known = [s for s in seen if s is not None]
        flips = sum(a != b for a, b in itertools.pairwise(known))
        if flips > 1:
            return Change.FLAKY, f"it changed {flips} times in {len(known)} runs"
        if self.same_setup and before is not None and now != before:
            return Change.FLAKY, "nothing that is recorded differs between the two runs"
        if not now:
            return Change.FIXED, ""
        if before:
            return Change.STILL, ""
        return Change.NEW, "" if before is False else "the baseline run could not have found it"


def _seen(run: Run, key: str, example: FindingRecord) -> bool | None:
    """Whether it failed in `run`; None where it could not have been found."""
    if _of(run, key):
        return True
    checkpoints = {c.name for c in run.manifest.checkpoints}
    axes = {a.name for a in run.manifest.axes}
    needed = {value.partition("=")[0] for s in example.minimal_sets for value in s}
    if run.interrupted or example.checkpoint not in checkpoints or not needed <= axes:
        return None
    # Failures that no finding covers yet may be this one.
    covered = {pair for f in run.findings for pair in f.pairs}
    loose = any(
        p.outcome in (Outcome.FAIL, Outcome.ERROR)
        and p.checkpoint == example.checkpoint
        and p.pair_id not in covered
        for p in run.pairs
    )
    return None if loose else False


def _title(found: Sequence[FindingRecord]) -> str:
    """Several findings of one identity differ in the stream policy that their titles end with."""
    title = found[0].title
    if len(found) == 1:
        return title
    return f"{title.partition(' (stream policy')[0]} ({len(found)} stream policies or cases)"


def _worst(found: Sequence[FindingRecord]) -> str:
    if not found:
        return ""
    top = max(found, key=lambda f: severity(f.worst, f.bound))
    return f"{top.metric} {quantity(top.worst, '')}"


def _name(run: Run) -> RunName:
    counts = {str(o): sum(p.outcome is o for p in run.pairs) for o in Outcome}
    return RunName(
        run_id=run.manifest.run_id,
        created=run.manifest.created,
        commit=run.manifest.commit,
        counts=tuple((name, n) for name, n in counts.items() if n),
    )


def _caution(run: Run, baseline: Run) -> str:
    mine, theirs = run.manifest, baseline.manifest
    if run.interrupted or baseline.interrupted:
        return "One of the runs was interrupted: what it did not reach is not compared."
    if (mine.profile, mine.seed) != (theirs.profile, theirs.seed) or set(run.cases) != set(
        baseline.cases
    ):
        return (
            "The runs did not run the same cases, so a failure can come or go with its case. "
            "Replay a finding to be sure that it is fixed."
        )
    return ""
