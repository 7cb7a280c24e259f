"""The pooling methods by name, and what a checkpoint says of the one it wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.errors import ConfigurationError, RequestError
from engine.pooling.base import PoolingMethod
from engine.pooling.cls import ClsPooling
from engine.pooling.concatenated import ConcatenatedPooling
from engine.pooling.last import LastPooling
from engine.pooling.max import MaxPooling
from engine.pooling.mean import MeanPooling
from engine.pooling.mean_sqrt import MeanSqrtPooling
from engine.pooling.retention import ChunkStore
from engine.pooling.selected import SelectedPooling
from engine.pooling.weighted_mean import WeightedMeanPooling
from engine.request import PoolingRequest

SEQUENCE_METHODS: Final[dict[str, Callable[[ChunkStore], PoolingMethod]]] = {
    "CLS": ClsPooling,
    "LAST": lambda _: LastPooling(),
    "MEAN": MeanPooling,
    "MEAN_SQRT": MeanSqrtPooling,
    "WEIGHTED_MEAN": WeightedMeanPooling,
    "MAX": MaxPooling,
}
"""Methods that answer with one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSpec:
    """`names` of `SEQUENCE_METHODS`, more than one of them joined; or ALL; or SELECTED with the
    `token_ids` whose rows are picked, of which `closing` stands once, after the others."""

    names: tuple[str, ...]
    token_ids: frozenset[int] = frozenset()
    closing: int | None = None

    def check_prompt(self, request: PoolingRequest) -> None:
        """Raise RequestError for a prompt without the tokens whose rows are wanted."""
        if self.names != ("SELECTED",):
            return
        found = [token for token in request.token_ids if token in self.token_ids]
        if not found:
            raise RequestError(
                f"request {request.request_id!r}: the prompt holds none of the tokens "
                f"{sorted(self.token_ids)} whose rows answer task={request.task.value!r}; put the "
                "model's step tag or markers into it"
            )
        ends = [place for place, token in enumerate(found, 1) if token == self.closing]
        if self.closing is not None and (len(found) < 2 or ends != [len(found)]):
            raise RequestError(
                f"request {request.request_id!r}: expected markers of documents and then one token "
                f"{self.closing} for the query, got {found[:20]}"
            )

    def build(self, new_store: Callable[[], ChunkStore]) -> PoolingMethod:
        """A method with its own stores; not for ALL, which the pooler owns."""
        if self.names == ("SELECTED",):
            return SelectedPooling(new_store(), self.token_ids)
        wrong = [name for name in self.names if name not in SEQUENCE_METHODS]
        if wrong or not self.names:
            raise ConfigurationError(
                f"pooling={'+'.join(self.names)!r} is not valid: expected some of "
                f"{', '.join(SEQUENCE_METHODS)}; ALL is what token-level tasks use"
            )
        methods = [SEQUENCE_METHODS[name](new_store()) for name in self.names]
        return methods[0] if len(methods) == 1 else ConcatenatedPooling(methods)


ALL: Final = MethodSpec(names=("ALL",))
"""Every token's row."""
