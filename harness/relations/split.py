"""A batch split into two answers as the whole batch does."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, order, renewed


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    count = len(asked.prompts)
    if count < 2:
        return "the case has one prompt: there is nothing to split"
    middle = asked.draw("split").randint(1, count - 1)
    return [
        FollowUp(
            variant=variant,
            case=renewed(asked.case, asked.case.prompts[part]),
            prompts=asked.prompts[part],
            matches=tuple(
                Match(prompt=index, follow_up=place)
                for place, index in enumerate(range(count)[part])
            ),
        )
        for variant, part in (
            ("first part", slice(0, middle)),
            ("second part", slice(middle, None)),
        )
    ]


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    return "the follow-up ran the whole batch" if len(order(other)) >= len(order(plan)) else None


SPLIT = Relation(
    name="split",
    meaning="a batch asked in two parts answers as in one",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
)
