"""A prompt's answer does not change when another prompt shares its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from harness.case import Prompt
from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, order, renewed
from harness.systems.base import Encoded


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    index = max(range(len(asked.prompts)), key=lambda i: asked.lengths[i])
    prompt, encoded = asked.case.prompts[index], asked.prompts[index]
    length = len(encoded.token_ids)
    if length < 2:
        return "no prompt has a beginning to share: each is one token"
    # All but the last token, so that a cache that forgets what follows would answer wrongly.
    shared = length - 1
    _, tail = asked.stranger(asked.draw("prefix"), max(1, length // 2))
    room = asked.max_model_len - shared
    ids = (*encoded.token_ids[:shared], *tail.token_ids[: max(1, room)])[: asked.max_model_len]
    types = (*encoded.type_ids[:shared], *(0,) * (len(ids) - shared)) if encoded.type_ids else ()
    other = Encoded(token_ids=ids, type_ids=types)
    return [
        FollowUp(
            variant="after its sharer",
            case=renewed(asked.case, [Prompt(tokens=ids), prompt]),
            prompts=(other, encoded),
            matches=(Match(prompt=index, follow_up=1),),
        )
    ]


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    return None if order(other)[:1] == ("0",) else "the prompt that shares the beginning ran later"


PREFIX = Relation(
    name="prefix",
    meaning="a prompt answers alike after one that shares all of it but the end",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
)
