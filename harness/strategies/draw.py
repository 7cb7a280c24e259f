"""Cases by number: the same seed gives the same cases in every process and on every machine.

Hypothesis' own source of randomness also draws constants it finds in whatever modules happen to be
loaded, so a seed would mean one thing under pytest and another on the command line. This module
brings its own source, through Hypothesis' interface for alternative backends.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

from harness.case import Case
from harness.strategies.cases import PAIR_TASKS, CaseSpace, cases
from harness.strategies.switching import switching_cases

MAX_ATTEMPTS = 50
"""Draws until a case that was not drawn before; then the space is too small."""


class SeedError(ValueError):
    """So many distinct cases cannot be drawn."""


class SeededProvider(PrimitiveProvider):
    """Owns: the random numbers of one draw. Choices are uniform and depend on the seed only."""

    seed = ""
    used = False

    def __init__(self, conjecturedata: object = None, /) -> None:
        super().__init__(conjecturedata)  # type: ignore[arg-type]
        self._random = random.Random(self.seed)

    def draw_boolean(self, p: float = 0.5) -> bool:
        type(self).used = True
        return self._random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        type(self).used = True
        low = shrink_towards - 2**31 if min_value is None else min_value
        high = max(low, shrink_towards + 2**31) if max_value is None else max_value
        if weights and self._random.random() < sum(weights.values()):
            return self._random.choices(list(weights), list(weights.values()))[0]
        return self._random.randint(low, high)

    def draw_float(self, **_: object) -> float:
        raise NotImplementedError("cases hold no floats")

    def draw_string(self, *_: object, **__: object) -> str:
        raise NotImplementedError("draw texts from a pool: Unicode tables differ between Pythons")

    def draw_bytes(self, *_: object, **__: object) -> bytes:
        raise NotImplementedError("cases hold no bytes")


_NAMES = itertools.count()


@contextmanager
def _backend(seed: str) -> Iterator[tuple[str, type[SeededProvider]]]:
    """A Hypothesis backend of its own for one draw, gone afterwards."""
    name = f"parity-seeded-{next(_NAMES)}"
    provider = type("_Provider", (SeededProvider,), {"seed": seed})
    AVAILABLE_PROVIDERS[name] = provider
    try:
        yield name, provider
    finally:
        del AVAILABLE_PROVIDERS[name]


def draw_one(strategy: st.SearchStrategy[Case], seed: str) -> Case:
    """The case a strategy gives for a seed."""
    found: list[Case] = []
    with _backend(seed) as (name, provider):

        @settings(
            backend=name,
            database=None,
            deadline=None,
            derandomize=False,
            max_examples=2,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def collect(case: Case) -> None:
            # Hypothesis tries the simplest case first, without asking the backend for a choice.
            if provider.used:
                found.append(case)

        collect()
    if not found:
        raise SeedError(f"seed {seed!r} drew no case: the strategy rejects too much")
    return found[0]


def draw_each(strategies: Sequence[st.SearchStrategy[Case]], count: int, seed: int) -> list[Case]:
    """`count` distinct cases, from each strategy in turn. Case n does not depend on `count`."""
    found: dict[str, Case] = {}
    turns = itertools.islice(itertools.cycle(strategies), count)
    for index, strategy in enumerate(turns):
        for attempt in range(MAX_ATTEMPTS):
            case = draw_one(strategy, f"{seed}:{index}:{attempt}")
            if case.case_id not in found:
                found[case.case_id] = case
                break
        else:
            raise SeedError(
                f"drew {len(found)} distinct cases of {count}, then {MAX_ATTEMPTS} known ones in a "
                "row; ask for fewer cases or allow longer prompts"
            )
    return list(found.values())


def draw_cases(space: CaseSpace, count: int, seed: int) -> list[Case]:
    """`count` distinct cases that cycle through the space's tasks and boundary classes.

    Every class is hit once as many cases of tasks that take token ids were drawn as the space has
    classes.
    """
    return draw_each(_rounds(space), count, seed)


def draw_switching(space: CaseSpace, count: int, seed: int) -> list[Case]:
    """`count` distinct cases, each task in turn, in which every switch of a decoder can act.

    Pairs come half as often: they are long, and a small pool has no room for steps that overlap.
    """
    by_ids = [task for task in space.tasks if task not in PAIR_TASKS]
    tasks = (*by_ids, *by_ids, *(task for task in space.tasks if task in PAIR_TASKS))
    return draw_each([switching_cases(space, task) for task in tasks], count, seed)


def _rounds(space: CaseSpace) -> list[st.SearchStrategy[Case]]:
    """Strategies in which every task meets every class that it can aim at."""
    by_ids = [task for task in space.tasks if task not in PAIR_TASKS]
    classes = itertools.cycle(space.classes)
    rounds: list[st.SearchStrategy[Case]] = []
    for turn in range(len(space.classes)):
        for position in range(len(space.tasks)):
            # Tasks rotate from round to round, so that a class does not always meet the same one.
            task = space.tasks[(position + turn) % len(space.tasks)]
            aim = next(classes) if task in by_ids else None
            rounds.append(cases(space, focus=aim, task=task))
    return rounds
