"""Rules applied to a run: one check a rule, and the exit code that follows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from harness.record import Outcome, Source
from reports.fates import Fate, Replayed, fates
from reports.gate.rules import Rules
from reports.ledger import KnownFinding, Standing, State, standings, unmatched
from reports.load import Run
from reports.view.lattice import Lattice, lattices
from reports.view.text import plural
from reports.view.verdict import judged_cases

DIFFERS, BROKEN, UNPROVEN = 1, 2, 3
"""Exit codes, as everywhere on the command line: a difference, an error, nothing proved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule and what was found. `code` is the exit code if it does not hold."""

    rule: str
    passed: bool
    wanted: str
    found: str
    code: int
    remedy: str = ""
    """What to do when it does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a run passes, and everything that the answer rests on."""

    run: Run
    rules: Rules
    today: date
    checks: tuple[Check, ...]
    standings: tuple[Standing, ...]
    unmatched: tuple[KnownFinding, ...]
    """Entries of the ledger that this run says nothing about."""
    replayed: tuple[Replayed, ...]
    """What became of the ledger's entries and of the corpus."""

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    @property
    def exit_code(self) -> int:
        """0 passes; else the first that applies: 1 a difference, 2 an error, 3 nothing proved."""
        return min((check.code for check in self.failed), default=0)


def decide(run: Run, rules: Rules, today: date) -> Decision:
    """Hold `run` to `rules` as of `today` (UTC)."""
    found = standings(run, rules.known, today)
    known = tuple(fates(run, today, rules.known))
    told = {r.entry.name for r in known if r.entry is not None and r.fate is not Fate.UNTOLD}
    stale = tuple(e for e in unmatched(run, rules.known) if e.name not in told)
    checks = (
        *_differences(run, found, stale, known),
        *_soundness(run, rules),
        *_amounts(run, rules),
    )
    return Decision(
        run=run,
        rules=rules,
        today=today,
        checks=checks,
        standings=found,
        unmatched=stale,
        replayed=known,
    )


def _differences(
    run: Run,
    found: tuple[Standing, ...],
    stale: tuple[KnownFinding, ...],
    known: tuple[Replayed, ...],
) -> Iterator[Check]:
    new = [s for s in found if s.state is State.NEW]
    yield _at_most(
        "new findings",
        len(new),
        0,
        DIFFERS,
        shown=", ".join(s.finding.finding_id for s in new[:5]),
        remedy="fix them, or accept each with an owner, a link and a last day: `parity known add`",
    )
    covered = {pair for s in found for pair in s.finding.pairs}
    loose = sum(p.outcome is Outcome.FAIL and p.pair_id not in covered for p in run.pairs)
    yield _at_most(
        "failures without a finding",
        loose,
        0,
        DIFFERS,
        remedy="let the run finish its search for causes; such a failure cannot be known",
    )
    expired = {
        s.finding.finding_id: s.entry
        for s in found
        if s.state is State.EXPIRED and s.entry is not None
    } | {r.name: r.entry for r in known if r.fate is Fate.EXPIRED and r.entry is not None}
    yield _at_most(
        "expired findings",
        len(expired),
        0,
        DIFFERS,
        shown=", ".join(
            f"{name} ({entry.owner}, until {entry.expires})"
            for name, entry in list(expired.items())[:5]
        ),
        remedy="fix them, or let their owner set a new day in the rules file",
    )
    fixed = [r for r in known if r.fate is Fate.FIXED and r.source is Source.LEDGER]
    yield _at_most(
        "fixed findings that are still in the ledger",
        len(fixed),
        0,
        DIFFERS,
        shown=", ".join(r.name for r in fixed[:5]),
        remedy="`parity known drop ID` takes each out; the ledger must not cover what may come",
    )
    yield _at_most(
        "known findings that were not found",
        len(stale),
        0,
        DIFFERS,
        shown=", ".join(entry.name for entry in stale[:5]),
        remedy="`parity known drop ID` if they are fixed; `parity known add ID` keeps the smallest "
        "case of one, which every run then replays",
    )


def _soundness(run: Run, rules: Rules) -> Iterator[Check]:
    limits = rules.limits
    errors = sum(p.outcome is Outcome.ERROR for p in run.pairs)
    if run.end is not None:
        errors = max(errors, run.end.counts.get(Outcome.ERROR, 0))
    yield Check(
        rule="complete run",
        passed=not run.interrupted,
        wanted="an end record",
        found="none: it was interrupted" if run.interrupted else "one",
        code=BROKEN,
        remedy="run it again",
    )
    if run.end is not None:
        told, held = _outcomes(run.end.counts), _outcomes(Counter(p.outcome for p in run.pairs))
        yield Check(
            rule="records add up",
            passed=told == held,
            wanted="as many comparisons as the end record counts",
            found="they do" if told == held else f"{told} counted, {held} recorded",
            code=BROKEN,
            remedy="run it again; lines are missing or were added",
        )
    yield Check(
        rule="plants",
        passed=limits.allow_plants or not run.manifest.plants,
        wanted="any" if limits.allow_plants else "none",
        found=", ".join(run.manifest.plants) or "none",
        code=BROKEN,
        remedy="gate a run without planted faults",
    )
    yield Check(
        rule="profile",
        passed=not limits.profiles or run.manifest.profile in limits.profiles,
        wanted=" or ".join(limits.profiles) or "any",
        found=run.manifest.profile,
        code=BROKEN,
        remedy="run that profile, or name this one in the rules file",
    )
    yield _at_most(
        "errors",
        errors,
        limits.max_errors,
        BROKEN,
        remedy="the report lists their reasons; nothing is known about what they would have shown",
    )
    yield _at_most(
        "vacuous comparisons",
        sum(p.outcome is Outcome.VACUOUS for p in run.pairs),
        limits.max_vacuous,
        UNPROVEN,
        remedy="the report lists which switch did not act; a vacuous comparison proves nothing",
    )
    if limits.max_warnings is not None:
        yield _at_most(
            "comparisons with a warning",
            sum(bool(p.warnings) for p in run.pairs),
            limits.max_warnings,
            UNPROVEN,
            remedy="the report lists the warnings",
        )


def _outcomes(counts: Mapping[str, int]) -> dict[str, int]:
    """Without errors: a part of the run that was lost is counted as one and has no comparison."""
    return {str(o): counts[o] for o in Outcome if o is not Outcome.ERROR and counts.get(o, 0)}


def _amounts(run: Run, rules: Rules) -> Iterator[Check]:
    cases = judged_cases(run)
    remedy = "run a larger profile, or lower the limit and say why beside it"
    yield _at_least("judged cases", len(cases), rules.limits.min_cases, remedy=remedy)
    ran = {c.name for c in run.manifest.checkpoints}
    for name, least in rules.checkpoints.items():
        own = sum(checkpoint == name for checkpoint, _ in cases)
        yield _at_least(
            f"judged cases of {name}",
            own,
            least,
            remedy=remedy if name in ran else "it was not run: `parity models --fetch` brings it",
        )
    maps = lattices(run)
    for lattice in maps:
        yield from _coverage(lattice, rules)
    if not maps:
        yield _at_least("checkpoints with a map", 0, 1, remedy="nothing was compared")


def _coverage(lattice: Lattice, rules: Rules) -> Iterator[Check]:
    for noun, judged, possible, share in (
        ("cells", lattice.judged_cells, lattice.possible_cells, rules.limits.min_cells),
        ("edges", lattice.judged_edges, lattice.possible_edges, rules.limits.min_edges),
    ):
        # 15.2 cells means 16; rounded first, since 0.55 * 20 is a little over 11.
        least = math.ceil(round(share * possible, 9))
        yield Check(
            rule=f"judged {noun} of {lattice.checkpoint}",
            passed=judged >= least,
            wanted=f"at least {least} of {possible}",
            found=f"{judged}",
            code=UNPROVEN,
            remedy="the report's map shows which were not judged, and why",
        )


def _at_most(
    rule: str, found: int, most: int, code: int, *, shown: str = "", remedy: str = ""
) -> Check:
    return Check(
        rule=rule,
        passed=found <= most,
        wanted=f"at most {most:,}" if most else "none",
        found=(f"{found:,}" if found else "none") + (f": {shown}" if shown else ""),
        code=code,
        remedy=remedy,
    )


def _at_least(rule: str, found: int, least: int, *, remedy: str) -> Check:
    return Check(
        rule=rule,
        passed=found >= least,
        wanted=f"at least {least:,}",
        found=f"{found:,}",
        code=UNPROVEN,
        remedy=remedy,
    )


def in_words(decision: Decision) -> str:
    """One sentence."""
    accepted_ids = {s.finding.finding_id for s in decision.standings if s.state is State.KNOWN}
    accepted_ids |= {
        r.name for r in decision.replayed if r.fate is Fate.STILL and r.source is Source.LEDGER
    }
    known = len(accepted_ids)
    if decision.failed:
        return f"The gate is closed: {plural(len(decision.failed), 'rule')} not met."
    accepted = f", {plural(known, 'known finding')} accepted" if known else ""
    return f"The gate is open: all {len(decision.checks)} rules met{accepted}."
