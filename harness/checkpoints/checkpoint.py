"""What is known of a checkpoint without opening it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.checkpoints.reranker import RerankerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What is known of a checkpoint without opening it.

    `kind`: a row sees those before it (decoder) or all (encoder), whatever the architecture is
    called. `tasks` are the engine's names of the pooling tasks it is meant for; `max_length` is in
    tokens; `recipe` changes whenever its files would. `reranker` repeats the folder's
    `reranker.json`.
    """

    name: str
    kind: Literal["decoder", "encoder"]
    origin: Literal["generated", "fetched", "folder"]
    pooling: Literal["LAST", "MEAN", "CLS"]
    tasks: tuple[str, ...]
    max_length: int
    recipe: str
    reranker: RerankerSpec | None = None
