"""From task to pooling method and head."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.errors import LedgerError
from engine.pooling.all import AllPooling
from engine.pooling.base import PoolingBatch, PoolingMethod
from engine.pooling.heads.base import Head
from engine.pooling.method import ALL, MethodSpec
from engine.pooling.retention import ChunkStore
from engine.request import PoolingRequest, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPart:
    """A part of a route, with its head's weights."""

    method: MethodSpec
    head: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The answer to one finished request, on the device, in `PoolingOutput.values`' shape.

    Sequence-level tasks: [D] or [C]; token-level tasks: [n, D] or [n, C]; joined: [D + n].
    """

    request_id: str
    rows: torch.Tensor
    failure: str = ""
    """Why there is no answer, when the head raised; `rows` is then empty."""


class Pooler:
    """Pools one step at a time; tasks may be mixed within a step.

    Public attributes are the parts a plug-in may replace on the instance: `all` (whose `own`
    decides ownership) and its `store`, `methods` and `routes`.

    Owns: the retained chunk rows of unfinished requests, in one store for each method.
    """

    def __init__(
        self, routes: Mapping[Task, tuple[BuiltPart, ...]], *, overlaps_steps: bool
    ) -> None:
        """`routes`: the tasks that can be asked for, with what answers each."""
        self.stores: list[ChunkStore] = []
        self.routes = dict(routes)
        self.store = self._new_store()
        self.all = AllPooling(self.store, overlaps_steps=overlaps_steps)
        self.methods: dict[MethodSpec, PoolingMethod] = {ALL: self.all}
        for parts in self.routes.values():
            for part in parts:
                if part.method not in self.methods:
                    self.methods[part.method] = part.method.build(self._new_store)

    def pool(self, hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        """Answers of the requests that finish in this step, in batch order.

        What a head raises is its request's failure. All else that is raised is the step's.
        `hidden` is [T, D] with T >= batch.num_rows. Runs on the compute stream and never waits
        for the device.
        """
        if hidden.ndim != 2 or hidden.shape[0] < batch.num_rows:
            raise LedgerError(
                f"hidden states: expected [T >= {batch.num_rows}, D], got {tuple(hidden.shape)}"
            )
        rows: dict[MethodSpec, dict[int, torch.Tensor]] = {}
        for spec, method in self.methods.items():
            members = [
                i
                for i, entry in enumerate(batch.entries)
                if any(part.method == spec for part in self.routes[entry.request.task])
            ]
            rows[spec] = method(hidden, batch, members) if members else {}
        return [
            self._answer(entry.request, {spec: found.get(i) for spec, found in rows.items()})
            for i, entry in enumerate(batch.entries)
            if entry.finishes
        ]

    def _answer(
        self, request: PoolingRequest, rows: Mapping[MethodSpec, torch.Tensor | None]
    ) -> Pooled:
        name, picked = request.request_id, []
        for part in self.routes[request.task]:
            found = rows[part.method]
            if found is None:
                raise LedgerError(
                    f"request {name!r} finished: expected rows by {part.method.names}, got none"
                )
            picked.append((part.head, found))
        try:
            return Pooled(request_id=name, rows=_headed(request, picked))
        except Exception as error:  # noqa: BLE001 - of a head that raised nothing is known
            empty = picked[0][1].new_empty(0)
            return Pooled(request_id=name, rows=empty, failure=f"{type(error).__name__}: {error}")

    def abort(self, request_id: str) -> None:
        """Drop what is retained for a request; after its last submitted step has pooled."""
        for store in self.stores:
            store.clear(request_id)

    def reset(self) -> None:
        """Drop everything that is retained: the run it belongs to was given up."""
        for store in self.stores:
            store.reset()

    def check_integrity(self, active_ids: Collection[str]) -> None:
        """Raise `LedgerError` if rows are retained for a request that is not active."""
        for store in self.stores:
            store.check_integrity(active_ids)

    @property
    def num_retained(self) -> int:
        """Requests that any store retains rows of, counted once a store."""
        return sum(map(len, self.stores))

    def _new_store(self) -> ChunkStore:
        self.stores.append(ChunkStore())
        return self.stores[-1]


def _headed(request: PoolingRequest, picked: Sequence[tuple[Head, torch.Tensor]]) -> torch.Tensor:
    """Every head on its rows; several answers are joined to one vector."""
    found = [head(rows, request.params) for head, rows in picked]
    if len(found) > 1:
        return torch.cat([values.flatten() for values in found])
    return found[0] if request.task.is_token_level else found[0][0]
