"""A failure that real concurrency decides: how often it shows, and an interleaving that fixes it.

Threads give another order every time. So the smallest failing cell is run again and again, and the
rate is told with its uncertainty. Where the system's streams can be steered, orders of execution
are then drawn until one fails, and that one is shrunk: it fails every time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.attribution.laboratory import Laboratory
from harness.attribution.signature import FailureKind
from harness.axes import Cell
from harness.case import Case
from harness.search import Budget

REPEATS = 20
DRAWS = 24
"""Interleavings drawn until one fails."""
CHOICES, WIDTH = 12, 4
"""Decisions of a drawn interleaving, and how many of a decision's options it may name."""
CONFIDENCE = 0.95
_Z = 1.959963984540054
"""Of the two-sided 95 % interval of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something showed: `failed` of `tried`."""

    failed: int
    tried: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval at 95 % (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
        n, share, z2 = self.tried, self.failed / self.tried, _Z * _Z
        middle = share + z2 / (2 * n)
        spread = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
        low, high = ((middle + sign * spread) / (1 + z2 / n) for sign in (-1, 1))
        return (low if self.failed else 0.0), (high if self.failed < n else 1.0)

    @property
    def needed(self) -> int | None:
        """Repeats that show it at least once with 95 % probability, if it is as rare as the
        interval allows; None when it never showed."""
        low = self.interval[0]
        if not self.failed or low <= 0:
            return None
        return 1 if low >= 1 else math.ceil(math.log(1 - CONFIDENCE) / math.log1p(-low))

    def __str__(self) -> str:
        low, high = self.interval
        told = f"failed in {self.failed} of {self.tried} repeats ({low:.0%} to {high:.0%} at 95 %)"
        if self.needed is None:
            return f"{told}; rarer than repeats can say"
        return f"{told}; {self.needed} repeats show it with 95 % even at the lower end"


def tell_race(
    case: Case,
    settings: Mapping[str, str],
    cell: Cell,
    kind: FailureKind,
    laboratory: Laboratory,
    budget: Budget,
) -> Iterator[str]:
    """Sentences for a finding: the rate, and the smallest failing interleaving if one was found."""
    once = laboratory.once()

    def fails(chosen: Mapping[str, str]) -> bool:
        table = once.table(case, chosen, [cell], kind)
        state = table.states.get(cell)
        return state is not None and state.bad

    tried = failed = 0
    while tried < REPEATS and not budget.exhausted:
        tried, failed = tried + 1, failed + fails(settings)
    if tried:
        yield str(Rate(failed, tried))
    if "stream_policy" not in settings:
        return

    def steered(choices: Sequence[int]) -> bool:
        chosen = {**settings, "stream_policy": policy(choices)}
        try:
            return fails(chosen)
        finally:
            once.forget(chosen)

    found = failing_interleaving(steered, budget, seed=case.case_id)
    if found is not None:
        yield (
            f"fails every time under stream_policy={policy(found)}, the smallest interleaving "
            "found; `parity replay` takes it by --policy"
        )


def policy(choices: Sequence[int]) -> str:
    """The stream policy that decides as listed, then in order of submission."""
    return f"drawn({','.join(map(str, choices))})" if choices else "immediate"


def failing_interleaving(
    fails: Callable[[Sequence[int]], bool], budget: Budget, *, seed: str
) -> tuple[int, ...] | None:
    """The first of some drawn interleavings that fails, made smaller; None if none did.

    Smaller is shorter, then earlier options: no decision of it can be dropped or be the first
    option, unless the budget ran out.
    """
    draw = random.Random(seed)
    for _ in range(DRAWS):
        if budget.exhausted:
            return None
        choices = tuple(draw.randrange(WIDTH) for _ in range(CHOICES))
        if fails(choices):
            return _smaller(choices, fails, budget)
    return None


def _smaller(
    choices: tuple[int, ...], fails: Callable[[Sequence[int]], bool], budget: Budget
) -> tuple[int, ...]:
    best, changed = choices, True
    while changed:
        changed = False
        for candidate in _simpler(best):
            if budget.exhausted:
                return best
            if fails(candidate):
                best, changed = candidate, True
                break
    return best


def _simpler(choices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shorter by half, by one, one decision less, one decision set to its first option."""
    for length in sorted({len(choices) // 2, len(choices) - 1}):
        if 0 <= length < len(choices):
            yield choices[:length]
    for index in range(len(choices)):
        yield choices[:index] + choices[index + 1 :]
    for index, choice in enumerate(choices):
        if choice:
            yield (*choices[:index], 0, *choices[index + 1 :])
