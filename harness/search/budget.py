"""What a search may spend: engine calls and seconds, whichever runs out first."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """Owns: the calls made and the moment the search began.

    Running out stops the search, never the run: what was found so far is reported.
    """

    def __init__(
        self, *, calls: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if calls < 0 or seconds < 0:
            raise ValueError(f"a budget is not negative, got calls={calls}, seconds={seconds}")
        self.calls, self.seconds = calls, seconds
        self.spent_calls = 0
        self._clock, self._began = clock, clock()

    def spend(self, calls: int = 1) -> None:
        """Count engine calls; may overdraw, so that a table once begun is finished."""
        self.spent_calls += calls

    @property
    def spent_seconds(self) -> float:
        return self._clock() - self._began

    @property
    def exhausted(self) -> bool:
        return self.spent_calls >= self.calls or self.spent_seconds >= self.seconds

    def share(self, parts: int) -> Budget:
        """One of `parts` equal parts of what is left, as a budget that begins now."""
        return Budget(
            calls=max(0, self.calls - self.spent_calls) // parts,
            seconds=max(0.0, self.seconds - self.spent_seconds) / parts,
            clock=self._clock,
        )
