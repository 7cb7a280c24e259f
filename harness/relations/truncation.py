"""In a causal model the rows of a prompt's first tokens are the rows of the prompt cut there."""

from __future__ import annotations

from collections.abc import Sequence

from harness.case import Prompt
from harness.record import Expectation, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, renewed, tokens
from harness.systems.base import Encoded


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    if not asked.causal:
        return "every token of an encoder sees the whole prompt, the end included"
    if asked.case.task not in ("token_embed", "token_classify"):
        return f"{asked.case.task} returns one row, that of the last token"
    index = max(range(len(asked.prompts)), key=lambda i: asked.lengths[i])
    length = asked.lengths[index]
    if length < 2:
        return "no prompt can be cut: each is one token"
    kept = asked.draw("truncation").randint(1, length - 1)
    ids = asked.prompts[index].token_ids[:kept]
    return [
        FollowUp(
            variant=f"first {kept} of {length} tokens",
            case=renewed(asked.case, [Prompt(tokens=ids)]),
            prompts=(Encoded(token_ids=ids),),
            matches=(Match(prompt=index, follow_up=0, rows=kept),),
        )
    ]


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:
    match = matches[0]
    full, cut = tokens(plan).get(str(match.prompt), 0), tokens(other).get(str(match.follow_up), 0)
    return None if cut < full else f"the follow-up ran {cut} tokens, the case {full}"


TRUNCATION = Relation(
    name="truncation",
    meaning="the rows of a prompt's first tokens are those of the prompt cut there (causal models)",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
)
