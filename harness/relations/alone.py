"""A prompt's answer does not depend on who else is in the batch: alone."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, companions, renewed


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    if len(asked.prompts) < 2:
        return "the case has one prompt: it ran alone already"
    index = asked.draw("alone").randrange(len(asked.prompts))
    return [
        FollowUp(
            variant="alone",
            case=renewed(asked.case, [asked.case.prompts[index]]),
            prompts=(asked.prompts[index],),
            matches=(Match(prompt=index, follow_up=0),),
        )
    ]


def _reach(plan: Plan, matches: Sequence[Match]) -> str | None:
    if companions(plan, matches[0].prompt):
        return None
    return f"prompt {matches[0].prompt} shared no step in the case's own run either"


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    shared = companions(other, matches[0].follow_up)
    return f"the follow-up's prompt shared a step with {len(shared)} others" if shared else None


ALONE = Relation(
    name="alone",
    meaning="a prompt alone answers as it does among the case's other prompts",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
    reach=_reach,
)
