"""What a metamorphic relation is: a second question whose answer is known from the first.

A relation needs no second configuration. It makes one or more follow-ups of a case, which run in
the same cell, and says which part of their outputs answers for which part of the case's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.case import Case, Prompt
from harness.record import Expectation, Json, Match, Tier
from harness.systems.base import Encoded

Plan = Sequence[Sequence[Sequence[Json]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A case as its system sees it, and what may be drawn for its follow-ups."""

    case: Case
    prompts: tuple[Encoded, ...]
    causal: bool
    vocabulary: int
    max_model_len: int
    encode: Callable[[Case], tuple[Encoded, ...]]
    """The system's own tokenizer, for follow-ups that are other texts."""
    reserved: frozenset[int] = frozenset()
    """Token ids that a drawn prompt may not hold."""
    unserved: str = "the system has no server of its own"
    """Why it cannot be asked through a server; empty: it can."""

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(len(prompt.token_ids) for prompt in self.prompts)

    def draw(self, name: str) -> random.Random:
        """Choices that follow from the case and the relation alone."""
        return random.Random(f"{self.case.case_id} {name}")

    def stranger(self, draw: random.Random, length: int) -> tuple[Prompt, Encoded]:
        """A prompt of drawn tokens, at most as long as the model takes."""
        drawn: list[int] = []
        while len(drawn) < min(length, self.max_model_len):
            token = draw.randrange(self.vocabulary)
            if token not in self.reserved:
                drawn.append(token)
        return Prompt(tokens=tuple(drawn)), Encoded(token_ids=tuple(drawn))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """One more run, in the cell of the case's own."""

    variant: str
    """Names it among the relation's follow-ups."""
    case: Case
    prompts: tuple[Encoded, ...]
    matches: tuple[Match, ...]
    same_plan: bool = False
    """Replay the steps of the case's own run."""
    before: tuple[tuple[Case, tuple[Encoded, ...]], ...] = ()
    """What the same instance is asked first; the answers are not looked at."""
    served: bool = False
    """Ask through the system's own server instead of its offline entry."""
    own_truth: bool = False
    """Its answers are not the case's: they are held to float64's answers for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One metamorphic relation.

    `follow_ups(asked)` are the runs to make, or the reason why there are none. `reach(plan,
    matches)` is None where the case's own plan leaves something to ask, else why not; it is known
    before the follow-up runs. `witness(plan, other, matches)` reads from both plans whether the
    follow-up really was another situation; None when it was, else why not. `exact_when(plan,
    other)`: whether two runs took steps on which no bit may differ, whatever the tier.
    """

    name: str
    meaning: str
    tier: Tier
    expects: Expectation
    follow_ups: Callable[[Asked], Sequence[FollowUp] | str]
    witness: Callable[[Plan, Plan, Sequence[Match]], str | None]
    reach: Callable[[Plan, Sequence[Match]], str | None] = lambda plan, matches: None  # noqa: ARG005
    exact_when: Callable[[Plan, Plan], bool] = lambda plan, other: False  # noqa: ARG005


def whole(count: int) -> tuple[Match, ...]:
    """Every prompt answers for itself."""
    return tuple(Match(prompt=index, follow_up=index) for index in range(count))


def renewed(case: Case, prompts: Sequence[Prompt]) -> Case:
    """The case's task and parameters with these prompts, which all arrive at once."""
    return Case(
        task=case.task,
        prompts=tuple(prompts),
        normalize=case.normalize,
        activation=case.activation,
        dimensions=case.dimensions,
    )


def companions(plan: Plan, prompt: int) -> frozenset[str]:
    """Requests that shared a step with the prompt."""
    name = str(prompt)
    steps = [{str(entry[0]) for entry in step} for step in plan]
    return frozenset().union(*(step for step in steps if name in step)) - {name}


def order(plan: Plan) -> tuple[str, ...]:
    """Requests in the order in which their first tokens ran."""
    return tuple(dict.fromkeys(str(entry[0]) for step in plan for entry in step))


def tokens(plan: Plan) -> Mapping[str, int]:
    """Tokens that ran, by request."""
    found: dict[str, int] = {}
    for step in plan:
        for entry in step:
            found[str(entry[0])] = found.get(str(entry[0]), 0) + int(entry[2])
    return found
