"""Which attention functions ran, counted as they were called, whoever asked for them by which name.

Attention runs inside an operator that compiled code calls, on whatever thread its stream has. So a
call is counted on its thread, and who ran the operation takes the count away: see `AttentionCalls`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


class _Untaken(threading.local):
    """Owns: a thread's calls that nobody has taken yet, by backend."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()


_UNTAKEN = _Untaken()


def counted(attend: Callable[..., T]) -> Callable[..., T]:
    """The function, each call of it counted under the name of the module that it is in."""
    name = attend.__module__.rpartition(".")[2]

    @wraps(attend)
    def counting(*args: Any, **options: Any) -> T:
        _UNTAKEN.calls[name] += 1
        return attend(*args, **options)

    return counting


def taken() -> Counter[str]:
    """The calls on this thread since they were last taken."""
    found, _UNTAKEN.calls = _UNTAKEN.calls, Counter()
    return found


def add(calls: Mapping[str, int]) -> None:
    """Count calls that a recording held and that were replayed without coming by here."""
    _UNTAKEN.calls.update(calls)


class AttentionCalls:
    """Owns: one rank's count of the attention functions that its operations called."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

    def begin(self) -> None:
        """Forget the last run's count."""
        self._calls.clear()

    def count(self, work: Callable[[], T]) -> Callable[[], T]:
        """The work, what it calls counted for this rank."""

        def counting() -> T:
            taken()  # what ran on this thread before and was nobody's step
            done = work()
            self._calls.update(taken())
            return done

        return counting

    @property
    def by_backend(self) -> dict[str, int]:
        return dict(sorted(self._calls.items()))
