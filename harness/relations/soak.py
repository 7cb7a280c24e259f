"""The first request and the one after many others: nothing of those others is left behind."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Expectation, Tier
from harness.relations.base import Asked, FollowUp, Relation, renewed, whole
from harness.relations.repeat import same_steps

REQUESTS = 32
"""More than any pool of slots, ring of buffers or queue of a small engine holds."""
BATCH = 4


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    draw = asked.draw("soak")
    before = []
    for _ in range(REQUESTS // BATCH):
        strangers = [asked.stranger(draw, draw.randint(1, 24)) for _ in range(BATCH)]
        case = renewed(asked.case, [prompt for prompt, _ in strangers])
        before.append((case, tuple(encoded for _, encoded in strangers)))
    return [
        FollowUp(
            variant=f"after {REQUESTS} others",
            case=asked.case,
            prompts=asked.prompts,
            matches=whole(len(asked.prompts)),
            same_plan=True,
            before=tuple(before),
        )
    ]


SOAK = Relation(
    name="soak",
    meaning="the first request and one after many others, on the same steps, have the same bits",
    tier=Tier.EXACT,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=same_steps,
)
