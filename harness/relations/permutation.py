"""The order in which prompts are asked does not matter, and each keeps its own answer."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, order, renewed


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    if len(set(asked.prompts)) < 2:
        return "the case has no two distinct prompts to exchange"
    places = list(range(len(asked.prompts)))
    draw = asked.draw("permutation")
    while places == sorted(places) or _fixed(asked, places):
        draw.shuffle(places)
    return [
        FollowUp(
            variant="shuffled",
            case=renewed(asked.case, [asked.case.prompts[i] for i in places]),
            prompts=tuple(asked.prompts[i] for i in places),
            matches=tuple(Match(prompt=i, follow_up=j) for j, i in enumerate(places)),
        )
    ]


def _fixed(asked: Asked, places: Sequence[int]) -> bool:
    """Whether the shuffle exchanged equal prompts only."""
    return [asked.prompts[i] for i in places] == list(asked.prompts)


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:
    place = {str(match.follow_up): str(match.prompt) for match in matches}
    if order(plan) == tuple(place[name] for name in order(other)):
        return "both runs took the prompts in the same order"
    return None


PERMUTATION = Relation(
    name="permutation",
    meaning="prompts asked in another order keep their answers",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
)
