"""A reranker reads a pair in order: query and document exchanged are another question."""

from __future__ import annotations

from collections.abc import Sequence

from harness.case import Prompt
from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, renewed


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    pairs = [
        index
        for index, prompt in enumerate(asked.case.prompts)
        if prompt.query is not None and prompt.query != prompt.document
    ]
    if not pairs:
        return "the case has no pair of two different texts"
    index = asked.draw("pair swap").choice(pairs)
    pair = asked.case.prompts[index]
    swapped = renewed(asked.case, [Prompt(query=pair.document, document=pair.query)])
    return [
        FollowUp(
            variant="swapped",
            case=swapped,
            prompts=asked.encode(swapped),
            matches=(Match(prompt=index, follow_up=0),),
            own_truth=True,
        )
    ]


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    return None if other else "the follow-up took no step"


PAIR_SWAP = Relation(
    name="pair swap",
    meaning="a reranker's score of a pair the other way round is another score, and the right one",
    tier=Tier.REORDERED,
    expects=Expectation.OTHER,
    follow_ups=_follow_ups,
    witness=_witness,
)
