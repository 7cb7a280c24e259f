"""From task to pooling method and head."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import torch

from engine.errors import ConfigurationError, LedgerError, RequestError, UnsupportedTaskError
from engine.pooling.all import AllPooling
from engine.pooling.base import PoolingBatch, PoolingMethod
from engine.pooling.cls import ClsPooling
from engine.pooling.heads import ClassifierHead, EmbeddingHead, Head
from engine.pooling.last import LastPooling
from engine.pooling.mean import MeanPooling
from engine.pooling.retention import ChunkStore
from engine.request import PoolingParams, PoolingRequest, Task


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
            heads |= {Task.EMBED: self.embedding, Task.TOKEN_EMBED: self.embedding}
        if self.classifier is not None:
            heads |= {Task.CLASSIFY: self.classifier, Task.TOKEN_CLASSIFY: self.classifier}
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
        self._model_tasks = frozenset(model_tasks)

    @property
    def supported_tasks(self) -> tuple[Task, ...]:
        """Declared by the model and known by the runner, in the order `Task` lists them."""
        return tuple(task for task in Task if task in self._model_tasks and task in self.heads)

    def check_task(self, task: Task) -> None:
        """Raise `UnsupportedTaskError` for a task outside `supported_tasks`."""
        if task in self.supported_tasks:
            return
        remedy = (
            f"select one of {_names(self.supported_tasks)}"
            if self.supported_tasks
            else "use a checkpoint that offers a task the runner supports"
        )
        if task in self._model_tasks and task in (Task.CLASSIFY, Task.TOKEN_CLASSIFY):
            remedy += ", or configure a classifier head"
        raise UnsupportedTaskError(
            f"task={task.value!r} is not supported: the model offers {_names(self._model_tasks)}, "
            f"the runner supports {_names(self.heads)}; {remedy}"
        )

    def check_params(self, request: PoolingRequest) -> None:
        """Raise `RequestError` for a parameter that does not apply to the request's task."""
        self.check_task(request.task)
        head = self.heads[request.task]
        given = {
            f.name for f in fields(PoolingParams) if getattr(request.params, f.name) is not None
        }
        foreign = sorted(given - head.parameters)
        if foreign:
            raise RequestError(
                f"request {request.request_id!r}: "
                + ", ".join(f"{name}={getattr(request.params, name)!r}" for name in foreign)
                + f" does not apply to task={request.task.value!r}: "
                f"expected only {sorted(head.parameters)}; leave it out"
            )
        head.check(request.params)

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


def _names(tasks: Collection[Task]) -> list[str]:
    return [task.value for task in Task if task in tasks]
