"""The same case through the engine's own server, in this process, has the offline answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.record import Expectation, Json, Match, Tier
from harness.relations.base import Asked, FollowUp, Plan, Relation, renewed, whole

_PLACE = re.compile(r"/.*\[(\d+)\]$")
"""Of a prompt in the body of a request: `pool-4f1a/input[3]`. Offline, requests have bare names."""


def _follow_ups(asked: Asked) -> Sequence[FollowUp] | str:
    if asked.unserved:
        return asked.unserved
    return [
        FollowUp(
            variant="server",
            case=renewed(asked.case, asked.case.prompts),
            prompts=asked.prompts,
            matches=whole(len(asked.prompts)),
            served=True,
        )
    ]


def _witness(plan: Plan, other: Plan, matches: Sequence[Match]) -> str | None:  # noqa: ARG001
    names = {str(entry[0]) for step in other for entry in step}
    bare = sorted(name for name in names if not _PLACE.search(name))
    if not names or bare:
        return f"the follow-up's requests {bare} came from no request over HTTP"
    return None


def same_steps(plan: Plan, other: Plan) -> bool:
    """Whether the server took the steps of the offline run, each of its prompts by its number.

    Never where a case became several requests, whose prompts are numbered from 0 each.
    """
    mine = [[list(entry) for entry in step] for step in plan]
    return mine == [[_numbered(entry) for entry in step] for step in other]


def _numbered(entry: Sequence[Json]) -> list[Json]:
    place = _PLACE.search(str(entry[0]))
    return [None if place is None else place.group(1), *entry[1:]]


ENTRY_POINT = Relation(
    name="entry point",
    meaning="the server answers a case as the offline engine does: on the same steps, bit for bit",
    tier=Tier.REORDERED,
    expects=Expectation.SAME,
    follow_ups=_follow_ups,
    witness=_witness,
    exact_when=same_steps,
)
