"""Breaks of `suites/invariance`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from suites.meta.planting.defect import Break


def _chunk_by_chunk(_: Callable[..., Any]) -> Callable[..., Any]:
    """`MeanPooling._advance`, which sums each chunk by itself and then the sums."""

    def function(pooling: Any, entry: Any, rows: Any) -> tuple[Any, Any]:
        own = rows.sum(0, keepdim=True)
        if entry.start:
            own = pooling._store.take(entry.request_id)[0] + own
        return own, rows[:0]

    return function


def _touched_by_all(final_norm: Callable[..., Any]) -> Callable[..., Any]:
    """`Stage.final_norm`, which adds nothing to each row: the others times zero."""

    def function(stage: Any, x: Any) -> Any:
        normed = final_norm(stage, x)
        return normed + 0 * normed.sum(0, keepdim=True)

    return function


BREAKS: Final = (
    Break(
        name="means-are-summed-chunk-by-chunk",
        suite="suites/invariance/test_drawn_cases.py",
        red="test_two_dozen",
        at="engine.pooling.mean:MeanPooling._advance",
        instead=_chunk_by_chunk,
    ),
    Break(
        name="every-row-touches-every-other",
        suite="suites/invariance/test_isolation.py",
        red="test_a_row_that_is_not_a_number_stays_where_it_is",
        at="engine.stage:Stage.final_norm",
        instead=_touched_by_all,
    ),
)
