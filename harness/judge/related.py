"""The verdict on a follow-up: whether its answers are what the case's answers say they must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.judge import attest, checks
from harness.judge.bounds import Bounds
from harness.judge.metrics import error
from harness.judge.output import Output, Outputs
from harness.judge.subject import Execution, Subject
from harness.judge.verdict import (
    Verdict,
    compared,
    crashed,
    pair_id,
    powerless,
    sound,
)
from harness.record import (
    Comparison,
    Expectation,
    Match,
    Measurement,
    Outcome,
    PairRecord,
    PowerRecord,
    RelationRecord,
    Tier,
)


def judge_relation(
    subject: Subject,
    a: Execution,
    b: Execution,
    relation: RelationRecord,
    *,
    oracle: Outputs | None,
    truth: Outputs | None = None,
    power: PowerRecord | None,
    bounds: Bounds,
    inapplicable: str | None = None,
    unwitnessed: str | None = None,
) -> PairRecord:
    """Judge a follow-up (side B) against the case's own run (side A).

    Args:
        subject: The case.
        a: The case's run.
        b: The follow-up, in the same cell.
        relation: What was asked.
        oracle: float64 outputs of the case.
        truth: float64 outputs of the follow-up, where its answers are to be others.
        power: The case's proof of power.
        bounds: The run's bounds.
        inapplicable: Why the relation says nothing about this case, known before the follow-up ran.
        unwitnessed: Why the follow-up was no other situation than the case.
    """
    tier = _tier(relation, a, b)
    verdict = crashed(a, b)
    if verdict is None and inapplicable is not None:
        verdict = Verdict(outcome=Outcome.INAPPLICABLE, reason=inapplicable)
    if verdict is None and unwitnessed is not None:
        verdict = Verdict(outcome=Outcome.VACUOUS, reason=unwitnessed)
    if verdict is None:
        reason = attest.unlike(a, b, tier, same_plan=relation.same_plan)
        verdict = None if reason is None else Verdict(outcome=Outcome.ERROR, reason=reason)
    if verdict is None:
        verdict = _answered(subject, a, b, relation, tier, oracle, truth, power, bounds)
    reason = f"{relation.relation}, {relation.variant}: {verdict.reason}" if verdict.reason else ""
    return PairRecord(
        pair_id=pair_id(subject.checkpoint, Comparison.RELATION, a.execution_id, b.execution_id),
        case_id=subject.case_id,
        checkpoint=subject.checkpoint,
        task=subject.task,
        comparison=Comparison.RELATION,
        axes=(),
        a=a.execution_id,
        b=b.execution_id,
        cell_a=dict(a.cell),
        cell_b=dict(b.cell),
        settings=dict(b.settings),
        tier=tier,
        outcome=verdict.outcome,
        reason=reason,
        num_compared=verdict.num_compared,
        measurements=verdict.measurements,
        warnings=verdict.warnings,
        worst_prompt=verdict.worst_prompt,
    )


def _tier(relation: RelationRecord, a: Execution, b: Execution) -> Tier:
    """Where both runs attest fixed reduction orders, company cannot change a bit either."""
    fixed = all((r.witness.get("flags") or {}).get("batch_invariant") == "on" for r in (a, b))
    return Tier.EXACT if fixed and relation.expects is Expectation.SAME else relation.tier


def _answered(
    subject: Subject,
    a: Execution,
    b: Execution,
    relation: RelationRecord,
    tier: Tier,
    oracle: Outputs | None,
    truth: Outputs | None,
    power: PowerRecord | None,
    bounds: Bounds,
) -> Verdict:
    matches = relation.matches
    missing = [m for m in matches if m.prompt >= len(a.outputs) or m.follow_up >= len(b.outputs)]
    if missing or not matches:
        count = f"{len(a.outputs)} and {len(b.outputs)} outputs"
        return Verdict(outcome=Outcome.FAIL, reason=f"there are {count}, too few to match")
    part = _part(subject, matches)
    mine = replace(a, outputs=_cut(a.outputs, matches, [m.prompt for m in matches]))
    other = replace(b, outputs=tuple(b.outputs[m.follow_up] for m in matches))
    broken = sound(part, mine, other)
    if broken is not None:
        return broken
    own = None if oracle is None else _cut(oracle, matches, [m.prompt for m in matches])
    if relation.expects is Expectation.SAME:
        return compared(part, tier, mine, other, own, power, bounds)
    if own is None or truth is None or len(truth) != len(other.outputs):
        return Verdict(outcome=Outcome.ERROR, reason="no float64 answer to both questions")
    return _another(part, mine, other, (own, truth), power, bounds)


def _part(subject: Subject, matches: Sequence[Match]) -> Subject:
    """The case as far as the follow-up answers for it."""
    return replace(
        subject,
        lengths=tuple(subject.lengths[m.prompt] if m.rows is None else m.rows for m in matches),
        prompts=tuple(subject.prompts[m.prompt] for m in matches),
    )


def _cut(outputs: Outputs, matches: Sequence[Match], places: Sequence[int]) -> tuple[Output, ...]:
    found = []
    for match, place in zip(matches, places, strict=True):
        output = outputs[place]
        found.append(
            output if match.rows is None else Output.of(output.data[: match.rows], output.dtype)
        )
    return tuple(found)


def _another(
    subject: Subject,
    a: Execution,
    b: Execution,
    truths: tuple[Outputs, Outputs],
    power: PowerRecord | None,
    bounds: Bounds,
) -> Verdict:
    """The answers to another question: the right ones for it, and so not those of the first.

    `truths` are float64's answers to both.
    """
    kind = subject.kind
    measurements: list[Measurement] = []
    reasons: list[str] = []
    for index, (first, other, own, exact) in enumerate(
        zip(a.outputs, b.outputs, *truths, strict=True)
    ):
        bound = bounds.bound(Tier.KERNEL, subject.key(index))
        off, moved = error(kind, other, exact), error(kind, exact, own)
        measurements += [
            Measurement(metric="oracle_error", value=off, bound=bound.oracle, why=bound.why),
            Measurement(
                metric="movement", value=moved, why="from float64's answer to one to the other"
            ),
        ]
        if moved == 0.0:
            reasons.append(f"prompt {index}: both questions are the same to float64: same tokens")
        elif moved <= bounds.power(subject.key(index)):
            return Verdict(
                outcome=Outcome.INAPPLICABLE,
                reason=f"float64's answers to both questions are only {moved:.3g} apart",
            )
        if not off <= bound.oracle:
            same = error(kind, other, first) <= bound.oracle
            what = (
                "the other question's answer is the first one's"
                if same
                else (f"the other question's answer is {off:.3g} from float64's")
            )
            reasons.append(f"prompt {index}: {what}, bound {bound.oracle:.3g}")
    hazard = attest.hazards(a, b)
    reason = "; ".join(filter(None, (*reasons, checks.norm(subject, "B", b.outputs, None), hazard)))
    outcome = Outcome.FAIL if reason else Outcome.PASS
    if outcome is Outcome.PASS:
        reason = powerless(power)
        outcome = Outcome.VACUOUS if reason else Outcome.PASS
    return Verdict(
        outcome=outcome,
        reason=reason,
        num_compared=sum(output.size for output in b.outputs),
        measurements=tuple(measurements),
        worst_prompt=0,
    )
