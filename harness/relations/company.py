"""A prompt's answer does not depend on who else is in the batch: other company."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, companions, renewed, tokens


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    """One prompt beside a stranger before it and a short one after it, and beside its twin."""
    draw = asked.draw("company")
    index = draw.randrange(len(asked.prompts))
    prompt, encoded = asked.case.prompts[index], asked.prompts[index]
    length = len(encoded.token_ids)
    # An odd length fills no step of an even budget, so that the prompt begins in a stranger's step.
    long, short = asked.stranger(draw, length // 2 + 8 | 1), asked.stranger(draw, 1)
    sides = [long, (prompt, encoded), short]
    return [
        FollowUp(
            variant="among strangers",
            case=renewed(asked.case, [p for p, _ in sides]),
            prompts=tuple(e for _, e in sides),
            matches=(Match(prompt=index, follow_up=1),),
        ),
        FollowUp(
            variant="beside its twin",
            case=renewed(asked.case, [prompt, prompt]),
            prompts=(encoded, encoded),
            matches=(Match(prompt=index, follow_up=0), Match(prompt=index, follow_up=1)),
        ),
    ]


def _reach(plan: Plan, matches: Sequence[Match]) -> str | None:
    """Twins that fill whole steps never meet, if the widest step is as wide as steps may be."""
    if len(matches) == 1:
        return None
    widest = max((sum(int(entry[2]) for entry in step) for step in plan), default=0)
    length = tokens(plan).get(str(matches[0].prompt), 0)
    if not widest or length % widest:
        return None
    return f"a prompt of {length} tokens fills steps of {widest}, so that its twin never joins one"


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    if not any(companions(other, match.follow_up) for match in matches):
        return "the follow-up's prompt shared no step with another"
    return None


COMPANY = Relation(
    name="company",
    meaning="a prompt answers alike beside strangers of other lengths, and beside its twin",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
    reach=_reach,
)
