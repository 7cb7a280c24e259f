"""What a search may spend: engine calls and seconds, whichever runs out first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
        self.counts: dict[str, list[int]] = {}
        """Engine calls of each stretch that was counted apart, by what it was for."""
        self._clock, self._began = clock, clock()

    def spend(self, calls: int = 1) -> None:
        """Count engine calls; may overdraw, so that a table once begun is finished."""
        self.spent_calls += calls

    @contextmanager
    def counting(self, what: str) -> Iterator[None]:
        """Note how many engine calls are made inside, beside the total."""
        before = self.spent_calls
        try:
            yield
        finally:
            self.counts.setdefault(what, []).append(self.spent_calls - before)

    def absorb(self, share: Budget) -> None:
        """Take over what a share of this budget has spent, and what it was spent on."""
        self.spend(share.spent_calls)
        for what, calls in share.counts.items():
            self.counts.setdefault(what, []).extend(calls)

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
