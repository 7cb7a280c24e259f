"""The reducer: the smallest case so far, and the one door through which a smaller one comes in.

Hypothesis stops shrinking after a fixed number of steps or seconds, neither of which can be set;
this one is held to a budget of engine calls, and to what the caller says must not change.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.case import Case, Prompt
from harness.search.budget import Budget


def size_of(case: Case) -> tuple[int, int, int, int, int]:
    """What smaller means, most important first.

    Prompts still given as text, tokens, prompts, options set, distinct and large token ids. Every
    accepted case is smaller, so reduction ends.
    """
    ids = [token for prompt in case.prompts for token in prompt.tokens or ()]
    options = (case.normalize, case.activation, case.dimensions)
    return (
        sum(prompt.tokens is None for prompt in case.prompts),
        len(ids),
        len(case.prompts),
        sum(option is not None for option in options) + bool(case.arrivals),
        len(set(ids)) + sum(ids),
    )


class Reducer:
    """Owns: the current case, the ids of those tried, and the chain of accepted ones."""

    def __init__(self, start: Case, *, keeps: Callable[[Case], bool], budget: Budget) -> None:
        """`keeps(case)`: whether it still shows what the search is about; may cost engine calls."""
        self.current = start
        self.accepted: list[Case] = [start]
        """`start` and every case that took its place, each smaller than the one before."""
        self._keeps, self._budget = keeps, budget
        self._seen = {start.case_id}

    @property
    def exhausted(self) -> bool:
        return self._budget.exhausted

    def consider(self, candidate: Case) -> bool:
        """Make `candidate` the current case if it is new, smaller and still shows the failure."""
        if self._budget.exhausted or candidate.case_id in self._seen:
            return False
        self._seen.add(candidate.case_id)
        if size_of(candidate) >= size_of(self.current) or not self._keeps(candidate):
            return False
        self.current = candidate
        self.accepted.append(candidate)
        return True


def as_token_ids(prompt: Prompt, token_ids: tuple[int, ...], type_ids: tuple[int, ...]) -> Prompt:
    """The prompt as its ids; itself when segments would be lost."""
    return prompt if any(type_ids) else Prompt(tokens=token_ids)
