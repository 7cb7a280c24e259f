"""What a capture needs of its surroundings, as far as it can be seen without a GPU.

Passes wrongly if the garbage of a closed engine stayed alive anyway, whatever the collector was
allowed to do. Ruled out by `test_garbage_outlives_a_capture_and_goes_after_it`, where it goes as
soon as the capture is over.
"""

from __future__ import annotations

import gc
import weakref

import pytest

from engine.execution.recording import uncollected


class Link:
    """One of a closed engine's objects that hold each other."""

    def __init__(self) -> None:
        self.other: Link | None = None


def dropped() -> weakref.ref[Link]:
    """A cycle that nothing refers to any more."""
    first, second = Link(), Link()
    first.other, second.other = second, first
    return weakref.ref(first)


def churn() -> None:
    """Allocate what makes the collector run, if it may."""
    kept = [[] for _ in range(100 * gc.get_threshold()[0])]
    assert kept


def test_garbage_outlives_a_capture_and_goes_after_it() -> None:
    gc.collect()
    with uncollected():
        garbage = dropped()
        churn()
        assert garbage() is not None
    churn()
    assert garbage() is None


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(*, enabled: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ValueError, match="the capture failed"), uncollected():
            raise ValueError("the capture failed")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()
