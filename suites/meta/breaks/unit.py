"""Breaks of the files that lie in `suites/unit` itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from suites.meta.planting.defect import Break


def _without_waiting(acquire: Callable[..., Any]) -> Callable[..., Any]:
    """`Slots.acquire`, which forgets the fence before it would wait for it."""

    def function(slots: Any, host: str) -> Any:
        slots._fences[slots._next] = None
        return acquire(slots, host)

    return function


BREAKS: Final = (
    Break(
        name="staging-is-not-waited-for",
        suite="suites/unit/test_buffers.py",
        red="test_no_step_reads_another_steps_staging",
        at="engine.buffers:Slots.acquire",
        instead=_without_waiting,
    ),
)
