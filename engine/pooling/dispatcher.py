"""From task to pooling method and head."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch

from engine.errors import ConfigurationError, LedgerError
from engine.pooling.all import AllPooling
from engine.pooling.base import PoolingBatch, PoolingMethod
from engine.pooling.cls import ClsPooling
from engine.pooling.heads import ClassifierHead, EmbeddingHead, Head
from engine.pooling.last import LastPooling
from engine.pooling.mean import MeanPooling
from engine.pooling.retention import ChunkStore
from engine.pooling.tasks import CLASSIFIER_TASKS, EMBEDDING_TASKS, TaskRules
from engine.request import PoolingRequest, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingHeads:
    """The heads a checkpoint gives rise to; None: no such head is configured."""

    embedding: EmbeddingHead | None = None
    classifier: ClassifierHead | None = None

    @property
    def by_task(self) -> Mapping[Task, Head]:
        """The tasks the runner knows, with the head that answers each."""
        heads: dict[Task, Head] = {}
        if self.embedding is not None:
            heads |= dict.fromkeys(EMBEDDING_TASKS, self.embedding)
        if self.classifier is not None:
            heads |= dict.fromkeys(CLASSIFIER_TASKS, self.classifier)
        return heads


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The answer to one finished request, on the device, in `PoolingOutput.values`' shape.

    Sequence-level tasks: [D] or [C]; token-level tasks: [n, D] or [n, C].
    """

    request_id: str
    rows: torch.Tensor


class Pooler:
    """Pools one step at a time; tasks may be mixed within a step.

    Public attributes are the parts a plug-in may replace on the instance: `sequence` (CLS, LAST
    or MEAN), `all` (whose `own` decides ownership) and `heads`.

    Owns: the retained chunk rows of unfinished requests (`store`).
    """

    def __init__(
        self,
        method: str,
        model_tasks: Collection[Task],
        heads: PoolingHeads,
        *,
        overlaps_steps: bool,
    ) -> None:
        """`method` for sequence-level tasks: CLS, LAST or MEAN. `model_tasks`: as declared."""
        self.store = ChunkStore()
        self.sequence = _sequence_method(method, self.store)
        self.all = AllPooling(self.store, overlaps_steps=overlaps_steps)
        self.heads = dict(heads.by_task)
        self.rules = TaskRules(
            model_tasks=frozenset(model_tasks),
            runner_tasks=frozenset(self.heads),
            hidden_size=heads.embedding.hidden_size if heads.embedding is not None else 0,
        )

    @property
    def supported_tasks(self) -> tuple[Task, ...]:
        """See `TaskRules`."""
        return self.rules.supported_tasks

    def check_task(self, task: Task) -> None:
        """See `TaskRules.check_task`."""
        self.rules.check_task(task)

    def check_params(self, request: PoolingRequest) -> None:
        """See `TaskRules.check_params`."""
        self.rules.check_params(request)

    def pool(self, hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        """Answers of the requests that finish in this step, in batch order.

        `hidden` is [T, D] with T >= batch.num_rows. Runs on the compute stream and never waits
        for the device.
        """
        if hidden.ndim != 2 or hidden.shape[0] < batch.num_rows:
            raise LedgerError(
                f"hidden states: expected [T >= {batch.num_rows}, D], got {tuple(hidden.shape)}"
            )
        rows: dict[int, torch.Tensor] = {}
        for method, token_level in ((self.sequence, False), (self.all, True)):
            members = [
                i
                for i, entry in enumerate(batch.entries)
                if entry.request.task.is_token_level is token_level
            ]
            if members:
                rows |= method(hidden, batch, members)
        pooled = []
        for i in sorted(rows):
            request = batch.entries[i].request
            values = self.heads[request.task](rows[i], request.params)
            pooled.append(
                Pooled(
                    request_id=request.request_id,
                    rows=values if request.task.is_token_level else values[0],
                )
            )
        return pooled

    def abort(self, request_id: str) -> None:
        """Drop what is retained for a request; after its last submitted step has pooled."""
        self.store.clear(request_id)

    def reset(self) -> None:
        """Drop everything that is retained: the run it belongs to was given up."""
        self.store.reset()

    def check_integrity(self, active_ids: Collection[str]) -> None:
        """Raise `LedgerError` if rows are retained for a request that is not active."""
        self.store.check_integrity(active_ids)


def _sequence_method(method: str, store: ChunkStore) -> PoolingMethod:
    if method == "LAST":
        return LastPooling()
    if method == "CLS":
        return ClsPooling(store)
    if method == "MEAN":
        return MeanPooling(store)
    raise ConfigurationError(
        f"pooling={method!r} is not valid: expected CLS, LAST or MEAN; "
        "ALL is what token-level tasks use"
    )
