"""The same question, asked again of the same instance on the same steps, has the same bits."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, whole


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    return [
        FollowUp(
            variant="again",
            case=asked.case,
            prompts=asked.prompts,
            matches=whole(len(asked.prompts)),
            same_plan=True,
        )
    ]


def same_steps(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    """Witness of a relation that repeats a run: it took the same steps."""
    mine, theirs = ([[list(e) for e in step] for step in p] for p in (plan, other))
    return None if mine == theirs else "the follow-up took other steps"


REPEAT = Relation(
    name="repeat",
    meaning="asked again on the same steps, a case has the same bits",
    tier=Tier.EXACT,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=same_steps,
)
