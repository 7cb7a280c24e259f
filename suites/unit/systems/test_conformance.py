"""The conformance check lets honest systems through and names what is wrong with the others.

Passes wrongly if a check was never asked of a system that breaks what it checks. Ruled out by
suites/meta/test_suites_can_fail.py: `one-answer-to-everything-conforms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from harness.axes import ALL_AXES, SECONDARY
from harness.case import Case
from harness.judge.output import Output
from harness.systems.account import Account
from harness.systems.base import Encoded, Refused, Session, SystemFailed
from harness.systems.conformance import Check, Conformance, Standing, exit_code
from harness.systems.plain import PlainSystem
from suites.unit.systems.assignments import CHUNK, assignment

VOCABULARY = 1024
SWITCHED = {
    f"{axis.name}={value}"
    for axis in ALL_AXES.values()
    for value in axis.values
    if value != axis.baseline
}


class Honest(PlainSystem):
    """Sums of the ids' waves: fast, and different for every prompt."""

    @property
    def tasks(self) -> tuple[str, ...]:
        return ("embed",)

    @property
    def num_threads(self) -> int:
        return 1

    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: Account,
    ) -> Sequence[Output]:
        found = []
        for index, prompt in enumerate(prompts):
            self.check(prompt.token_ids)
            n = len(prompt.token_ids)
            account.step([(index, 0, n, n)], rows=n)
            found.append(self.row(prompt.token_ids))
        return found

    def check(self, ids: Sequence[int]) -> None:
        if not ids or max(ids) >= VOCABULARY:
            raise SystemFailed("no such prompt")

    def row(self, ids: Sequence[int]) -> Output:
        waves = np.cos(np.outer(np.arange(1, 9), np.array(ids)) + np.arange(len(ids)))
        total = waves.sum(axis=1)
        return Output.of((total / np.linalg.norm(total)).astype(np.float32))


class Takes(Honest):
    """Takes every switch and ignores it."""

    values: Mapping[str, tuple[str, ...]] = {a.name: a.values for a in ALL_AXES.values()}


class Answers(Honest):
    """Answers whatever it is given."""

    def check(self, ids: Sequence[int]) -> None: ...

    def row(self, ids: Sequence[int]) -> Output:
        return super().row(ids or [1])


class Turned(Honest):
    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: Account,
    ) -> Sequence[Output]:
        found = super().answer(case, prompts, cell=cell, account=account)
        return [*found[1:], found[0]]


class Blind(Honest):
    def row(self, ids: Sequence[int]) -> Output:
        return super().row([1, 2, 3])


class NotFinite(Honest):
    def row(self, ids: Sequence[int]) -> Output:
        return Output.of(np.full(8, np.nan, np.float32))


class Short(Honest):
    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: Account,
    ) -> Sequence[Output]:
        return super().answer(case, prompts, cell=cell, account=account)[:-1]


class Mute(Honest):
    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        try:
            return super().open(cell, settings)
        except Refused:
            raise Refused("") from None


class Dice(Honest):
    """Does not repeat itself to the bit."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._draw = np.random.default_rng(0)

    def row(self, ids: Sequence[int]) -> Output:
        noise = 1e-6 * self._draw.standard_normal(8)
        return Output.of((super().row(ids).data + noise).astype(np.float32))


def checked(kind: type[Honest]) -> dict[str, Check]:
    found = Conformance(
        system=kind(assignment()),
        checkpoint="tiny-qwen3",
        vocabulary=VOCABULARY,
        chunk=CHUNK,
        max_model_len=96,
    ).run()
    return {check.name: check for check in found}


def test_an_honest_system_conforms() -> None:
    found = checked(Honest)
    standings = {check.standing for check in found.values()}
    assert standings == {Standing.HOLDS, Standing.REFUSED}, found
    assert {n for n, c in found.items() if c.standing is Standing.REFUSED} == SWITCHED
    assert exit_code(list(found.values())) == 0


def test_an_ignored_switch_is_vacuous() -> None:
    found = checked(Takes)
    vacuous = {name for name, check in found.items() if check.standing is Standing.VACUOUS}
    assert vacuous > SWITCHED
    # Who takes a secondary switch must tell of it at rest too.
    assert vacuous - SWITCHED <= {f"{axis.name}={axis.baseline}" for axis in SECONDARY.values()}
    assert exit_code(list(found.values())) == 3


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        (Answers, "refuses an id beyond the vocabulary", "it was answered"),
        (Answers, "refuses a prompt without tokens", "it was answered"),
        (Turned, "order of outputs", "another's"),
        (Blind, "answers embed", "same answer"),
        (NotFinite, "answers embed", "finite"),
        (Short, "answers embed", "7 outputs for 8 prompts"),
        (Mute, "pp=2", "without a reason"),
    ],
)
def test_what_is_wrong_is_named(kind: type[Honest], name: str, told: str) -> None:
    check = checked(kind)[name]
    assert check.standing is Standing.BROKEN
    assert told in check.detail
    assert exit_code([check]) == 1


def test_not_repeating_a_bit_is_allowed_and_told() -> None:
    check = checked(Dice)["the same again"]
    assert check.standing is Standing.NOTE
    assert "differ in their bits" in check.detail


def test_nothing_checked_is_no_success() -> None:
    assert exit_code([]) == 3
