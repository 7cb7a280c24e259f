"""Is it safe? The verdict, what it rests on, and what it proves and does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.record import Comparison, Outcome, exit_code
from reports.load import Run
from reports.view.bounds import interval, upper
from reports.view.findings import cause_of
from reports.view.known import known
from reports.view.looks import LOOKS, SEVERITY, Look, state_of
from reports.view.text import number, percent, plural


class Safety(StrEnum):
    """SAFE and UNSAFE are verdicts; UNPROVEN is the absence of one."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Pairs that ended one way."""

    look: Look
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`exit_code` is what the command line returns for these records; a killed run has none."""

    safety: Safety
    headline: str
    sentence: str
    exit_code: int | None
    interrupted: bool
    counts: tuple[Count, ...]
    num_pairs: int
    num_cases: int
    num_compared: int
    num_warnings: int
    statistics: str
    limits: tuple[str, ...]
    problems: tuple[str, ...]


def verdict(run: Run) -> Verdict:
    """Judge the records present; an end record that disagrees with them is a problem, shown."""
    counts = Counter(pair.outcome for pair in run.pairs)
    problems = _problems(run, counts)
    code = exit_code({str(outcome): n for outcome, n in counts.items()})
    # The end record also counts what is no comparison: drift, and known findings that still fail.
    if run.end is not None and (code == 0 or run.end.exit_code == 1):
        code = run.end.exit_code
    safety = Safety.UNSAFE if code == 1 else Safety.SAFE
    if code not in (0, 1) or (code == 0 and (run.interrupted or problems)):
        safety = Safety.UNPROVEN
    headline, sentence = _words(run, counts, code=code, safety=safety)
    judged = judged_cases(run)
    return Verdict(
        safety=safety,
        headline=headline,
        sentence=sentence,
        exit_code=None if code == 0 and safety is Safety.UNPROVEN else code,
        interrupted=run.interrupted,
        counts=tuple(
            Count(look=LOOKS[state_of(o)], pairs=counts[o])
            for o in sorted(Outcome, key=lambda o: SEVERITY.index(state_of(o)))
        ),
        num_pairs=len(run.pairs),
        num_cases=len(judged),
        num_compared=sum(p.num_compared for p in run.pairs),
        num_warnings=sum(bool(p.warnings) for p in run.pairs),
        statistics=_statistics(judged),
        limits=_limits(run),
        problems=problems,
    )


def _problems(run: Run, counts: Counter[Outcome]) -> tuple[str, ...]:
    if run.end is None:
        return (
            "This run was interrupted: no end record. What follows is what it had recorded; "
            "cases that it never reached are not in it.",
        )
    told = {name: n for name, n in run.end.counts.items() if n}
    found = {str(outcome): n for outcome, n in counts.items() if n}
    if told != found:
        return (
            f"The records do not add up: the end record counts {_listed(told)}, the file holds "
            f"{_listed(found)}. Lines are missing or were added.",
        )
    return ()


def _known_words(run: Run) -> str:
    found = known(run)
    if found is None or not found.failing:
        return ""
    fail = "still fails" if found.failing == 1 else "still fail"
    return f" {plural(found.failing, 'known finding')} {fail}."


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in sorted(counts.items())) or "no pair"


def _words(run: Run, counts: Counter[Outcome], *, code: int, safety: Safety) -> tuple[str, str]:
    pairs = plural(len(run.pairs), "comparison")
    if safety is Safety.SAFE:
        return (
            "Same answers in every way it was run",
            f"{pairs}: {counts[Outcome.PASS]:,} agree, none differs beyond its bound.",
        )
    if safety is Safety.UNSAFE:
        failed = counts[Outcome.FAIL]
        found, causes = len(run.findings), len({cause_of(f) for f in run.findings})
        together = (
            f", {plural(causes, 'cause')} by their switches and first difference"
            if causes < found
            else ""
        )
        return (
            "The answers depend on how it is run",
            f"{failed:,} of {pairs} {'differs' if failed == 1 else 'differ'} by more than the "
            f"bound allows; {plural(found, 'finding')} below{together}."
            + "".join(f" {d.reason}." for d in run.drifts if d.outcome is Outcome.FAIL)
            + _known_words(run),
        )
    if run.interrupted:
        return "No verdict: the run was interrupted", f"{pairs} had been recorded by then."
    if code == 2:
        return (
            "No verdict: some comparisons could not be made",
            f"{counts[Outcome.ERROR]:,} of {pairs} ended in an error; the reasons are below.",
        )
    if code == 3 and counts[Outcome.VACUOUS]:
        return (
            "No verdict: some comparisons prove nothing",
            f"{counts[Outcome.VACUOUS]:,} of {pairs} compared runs whose switch did not act, or "
            "a model that cannot tell inputs apart.",
        )
    if code == 3:
        return "No verdict: nothing was proved", f"{pairs}, and not one of them is a PASS."
    if code == 0:
        return "No verdict: the records do not add up", f"{pairs} were found."
    return f"No verdict: the run ended with exit code {code}", f"{pairs} were recorded."


def judged_cases(run: Run) -> dict[tuple[str, str], bool]:
    """(checkpoint, case) -> failed, for every case with at least one PASS or FAIL."""
    judged: dict[tuple[str, str], bool] = {}
    for pair in run.pairs:
        if pair.outcome in (Outcome.PASS, Outcome.FAIL):
            key = (pair.checkpoint, pair.case_id)
            judged[key] = judged.get(key, False) or pair.outcome is Outcome.FAIL
    return judged


def _statistics(judged: Mapping[tuple[str, str], bool]) -> str:
    trials, failures = len(judged), sum(judged.values())
    if not trials:
        return "No case was judged, so nothing can be said about the next one."
    if not failures:
        bound = upper(0, trials)
        return (
            f"No failure in {plural(trials, 'judged case')}. At 95 % confidence the next case "
            f"drawn the same way fails with probability below {percent(bound)} "
            f"(1 − 0.05^(1/n) with n = {trials:,}; the rule of three, 3/n, gives "
            f"{percent(min(1.0, 3 / trials))})."
        )
    low, high = interval(failures, trials)
    return (
        f"{failures:,} of {plural(trials, 'judged case')} fail: {percent(failures / trials)}, "
        f"95 % interval {percent(low)} to {percent(high)} (Clopper-Pearson)."
    )


def false_alarms(run: Run) -> str:
    """How often a run without planted faults fails, as far as this one can tell."""
    judged = judged_cases(run)
    trials, failures = len(judged), sum(judged.values())
    if failures:
        return (
            f"{failures:,} of {plural(trials, 'judged case')} fail. Whether they are false alarms "
            "only a look at them can tell."
        )
    if not trials:
        return "No case was judged."
    return (
        f"Not one of {plural(trials, 'judged case')} fails in this run, so a case of this kind is "
        f"a false alarm with probability below {percent(upper(0, trials))} (95 % confidence)."
    )


def _limits(run: Run) -> tuple[str, ...]:
    """What the figures do not reach, read from what was run."""
    lengths = [n for case in run.cases.values() for n in case.lengths]
    limits = [
        "The figure counts cases, not comparisons, and treats cases as independent draws of this "
        "profile; cases unlike them are outside it.",
    ]
    if lengths:
        limits.append(
            f"Prompts of {min(lengths):,} to {number(max(lengths))} tokens were run; longer ones "
            "were not."
        )
    models = [f"{c.name} ({c.dtype})" for c in run.manifest.checkpoints]
    if models:
        limits.append(f"It speaks for {', '.join(models)} on this machine's hardware and software.")
    limits.append(
        "A race can depend on the process: every case that shares a process shares its luck."
    )
    if not any(p.comparison is Comparison.ORACLE for p in run.pairs):
        limits.append(
            "No comparison with the float64 oracle is recorded: all sides could be wrong alike."
        )
    return tuple(limits)
