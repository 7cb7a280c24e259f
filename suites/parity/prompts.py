"""Requests of mixed tasks and lengths, the same in every process."""

from __future__ import annotations

import random
from collections.abc import Sequence

from engine.request import PoolingParams, PoolingRequest, Task

Wanted = Sequence[tuple[int, Task]]
"""(number of tokens, task) of each request."""

# Token rows keep an identity head: a head that copies would hide an ownership bug.
MIXED: Wanted = (
    (40, Task.EMBED),
    (7, Task.TOKEN_EMBED),
    (65, Task.EMBED),
    (16, Task.TOKEN_EMBED),
    (1, Task.EMBED),
    (33, Task.TOKEN_EMBED),
    (17, Task.CLASSIFY),
    (10, Task.TOKEN_CLASSIFY),
)
"""Lengths around multiples of 16: below, at and one above a chunk, one token, several chunks."""


def requests(wanted: Wanted, *, vocabulary: int, seed: int = 0) -> list[PoolingRequest]:
    """One request for each (length, task); token ids are drawn from [0, vocabulary)."""
    draw = random.Random(seed)
    return [
        PoolingRequest(
            request_id=str(index),
            token_ids=tuple(draw.randrange(vocabulary) for _ in range(length)),
            task=task,
            params=PoolingParams(normalize=False if task is Task.TOKEN_EMBED else None),
        )
        for index, (length, task) in enumerate(wanted)
    ]
