"""When a cooperative device runs what was submitted to it.

All run on the thread of the host that calls the device, so a schedule is a function of the
submissions (and of the drawn choices), and replays exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.config import StreamPolicy
from engine.errors import ConfigurationError
from engine.stream.base import rank_of
from engine.stream.log import Operation
from engine.stream.tasks import Task


class Queues(Protocol):
    """What a policy may see and do. Nothing here can break program order or an event's wait."""

    @property
    def streams(self) -> Sequence[str]:
        """Streams used in this run, in order of first use."""
        ...

    def head(self, stream: str) -> Task | None:
        """Oldest task of the stream that has not run."""
        ...

    def ready(self, stream: str) -> bool:
        """Whether the stream has a head and the head waits for nothing."""
        ...

    def run_head(self, stream: str) -> None:
        """Run the head, which must be ready."""
        ...

    def run_through(self, operation: Operation) -> None:
        """Run an operation's stream up to it, and before that all that it waits for."""
        ...


class Policy(Protocol):
    """Reacts to what the host does. Every hook may run any ready work, or none."""

    def submitted(self, queues: Queues, operation: Operation) -> None:
        """An operation was queued."""
        ...

    def ran(self, operation: Operation, *, queue_empty: bool) -> None:
        """An operation ran, for whatever reason."""
        ...

    def decision_point(self, queues: Queues) -> None:
        """The host touched a buffer, ended a step or is about to wait."""
        ...

    def waited(self, queues: Queues) -> None:
        """A host's wait was served."""
        ...

    def begin_run(self) -> None:
        """Start again as new."""
        ...


class _Inert:
    """Hooks that a policy does not use."""

    def ran(self, operation: Operation, *, queue_empty: bool) -> None:
        pass

    def decision_point(self, queues: Queues) -> None:
        pass

    def waited(self, queues: Queues) -> None:
        pass

    def begin_run(self) -> None:
        pass


class Lag(_Inert):
    """One stream runs only when someone waits for it; every other runs at submit.

    With no lagging stream this is `immediate`.
    """

    def __init__(self, lagging: str | None = None) -> None:
        self.lagging = lagging

    def submitted(self, queues: Queues, operation: Operation) -> None:
        if operation.stream != self.lagging:
            queues.run_through(operation)


class Paced(_Inert):
    """A device of finite speed: work is paid for before it runs.

    Each submit on any stream of a rank gives every stream of that rank with queued work `units`;
    a head runs when it waits for nothing and its cost is paid. A stream with nothing queued keeps
    no credit (an idle device does not run faster later), and a host's wait runs what it needs
    whatever the credit. Owns: the streams' credit.
    """

    def __init__(self, units: int) -> None:
        self._units = units
        self._credit: dict[str, int] = {}

    def submitted(self, queues: Queues, operation: Operation) -> None:
        for stream in queues.streams:
            if rank_of(stream) == operation.rank and queues.head(stream) is not None:
                self._credit[stream] = self._credit.get(stream, 0) + self._units
        self._settle(queues)

    def ran(self, operation: Operation, *, queue_empty: bool) -> None:
        left = self._credit.get(operation.stream, 0) - operation.cost
        self._credit[operation.stream] = 0 if queue_empty else max(0, left)

    def waited(self, queues: Queues) -> None:
        self._settle(queues)

    def begin_run(self) -> None:
        self._credit = {}

    def _settle(self, queues: Queues) -> None:
        """Until nothing that is ready is also paid for: one stream's work may unblock another's."""
        progressed = True
        while progressed:
            progressed = False
            for stream in queues.streams:
                while queues.ready(stream) and self._paid(queues, stream):
                    queues.run_head(stream)
                    progressed = True

    def _paid(self, queues: Queues, stream: str) -> bool:
        head = queues.head(stream)
        return head is not None and self._credit.get(stream, 0) >= head.operation.cost


class Drawn(_Inert):
    """Each decision point takes the next choice c of a finite list.

    With S streams used so far in the run, c mod (S + 1) = 0 runs nothing and i runs the i-th of
    them as far as it can get without waiting. Streams are numbered by first use in the run, so
    the same choices give the same order whatever the device ran before. Past the end of the list
    a decision point runs all that is ready. Owns: the place in the list.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = tuple(choices)
        self._next = 0

    def submitted(self, queues: Queues, operation: Operation) -> None:
        pass

    def decision_point(self, queues: Queues) -> None:
        streams = tuple(queues.streams)
        if self._next == len(self._choices):
            while any(self._advance(queues, stream) for stream in streams):
                pass
            return
        choice = self._choices[self._next] % (len(streams) + 1)
        self._next += 1
        if choice > 0:
            self._advance(queues, streams[choice - 1])

    def begin_run(self) -> None:
        self._next = 0

    @staticmethod
    def _advance(queues: Queues, stream: str) -> bool:
        """Whether anything ran."""
        progressed = False
        while queues.ready(stream):
            queues.run_head(stream)
            progressed = True
        return progressed


def cooperative_policy(policy: StreamPolicy, num_ranks: int) -> Policy:
    """The policy a configuration names, on a device of `num_ranks` ranks.

    Raises:
        ConfigurationError: the lagging stream's rank does not exist.
    """
    match policy.kind:
        case "immediate":
            return Lag()
        case "lag":
            return Lag(resolve_stream(policy.stream, num_ranks))
        case "paced":
            return Paced(policy.units)
        case "drawn":
            return Drawn(policy.choices)
    raise ConfigurationError(
        f"stream policy {str(policy)!r} is not cooperative: expected immediate, lag, paced or drawn"
    )


def resolve_stream(selector: str, num_ranks: int) -> str:
    """`compute@first`, `copy@last` or `copy@1` as the name of a stream."""
    kind, _, which = selector.partition("@")
    rank = {"first": 0, "last": num_ranks - 1}.get(which)
    rank = int(which) if rank is None else rank
    if not 0 <= rank < num_ranks:
        raise ConfigurationError(
            f"lagging stream={selector!r}: there is no rank {rank}, the ranks are 0 to "
            f"{num_ranks - 1}"
        )
    return f"{kind}@{rank}"
