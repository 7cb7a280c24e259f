"""Each relation holds for a tight system, catches the leak it is for, and notices a liar.

Passes wrongly if a relation held whatever the system leaks, or its witness believed a liar. Ruled
out by `test_its_leak_is_caught`, `test_a_system_that_runs_the_case_again_instead_is_vacuous`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.axes import Plan
from harness.case import Case, Prompt
from harness.record import Expectation, Match, Outcome, PairRecord, Tier
from harness.relations import RELATIONS
from harness.relations.base import Asked
from harness.relations.entry_point import same_steps
from harness.systems.base import Encoded, SystemRun
from suites.unit.attribution.toy import VOCABULARY, scheduled
from suites.unit.relations.leaky import Asked as AskedPrompt
from suites.unit.relations.leaky import Leak, LeakySession, LeakySystem, related

LENGTHS = (40, 7, 33, 20)


def tokens(seed: int, length: int) -> Prompt:
    return Prompt(tokens=tuple((seed + 31 * j + j * j) % 590 for j in range(length)))


ROWS = Case(
    task="token_embed",
    prompts=tuple(tokens(i, n) for i, n in enumerate(LENGTHS)),
    normalize=False,
)
PAIRS = Case(
    task="score",
    prompts=(
        Prompt(query="who wrote it", document="a book about rivers"),
        Prompt(query="how deep is it", document="a book about the sea"),
    ),
)
CASE = {"pair swap": PAIRS}


def alone(asked: AskedPrompt) -> float:
    return 1e-2 * (len(asked.prompts) > 1)


def neighbours(asked: AskedPrompt) -> float:
    total = sum(len(prompt.token_ids) for prompt in asked.prompts)
    return 1e-3 * (total - asked.length)


def position(asked: AskedPrompt) -> float:
    return 1e-2 * asked.index


def memory(asked: AskedPrompt) -> float:
    return 1e-3 * asked.before


def slow_memory(asked: AskedPrompt) -> float:
    return 1e-3 * (asked.before // 100)


def size(asked: AskedPrompt) -> float:
    return 1e-3 * len(asked.prompts)


def shared_beginning(asked: AskedPrompt) -> float:
    """A cache that takes two prompts with one beginning for each other."""
    mine = asked.prompts[asked.index].token_ids[:4]
    return 1e-2 * any(other.token_ids[:4] == mine for other in asked.prompts[: asked.index])


def length(asked: AskedPrompt) -> float:
    return 1e-3 * asked.length


def door(asked: AskedPrompt) -> float:
    return 1e-2 * asked.served


LEAKS: Mapping[str, Leak] = {
    "alone": alone,
    "company": neighbours,
    "permutation": position,
    "repeat": memory,
    "split": size,
    "prefix": shared_beginning,
    "truncation": length,
    "soak": slow_memory,
    "pair swap": length,
    "entry point": door,
}


def reasons(pairs: Sequence[PairRecord]) -> str:
    return " | ".join(pair.reason for pair in pairs)


def test_every_relation_has_a_leak_that_it_catches() -> None:
    assert set(LEAKS) == set(RELATIONS)


@pytest.mark.parametrize("name", RELATIONS)
def test_a_tight_system_holds_it(tmp_path: Path, name: str) -> None:
    pairs = related(tmp_path, LeakySystem(), CASE.get(name, ROWS), name)
    assert pairs
    assert {pair.outcome for pair in pairs} == {Outcome.PASS}, reasons(pairs)
    assert all(pair.settings["relation"].startswith(name) for pair in pairs)


@pytest.mark.parametrize("name", RELATIONS)
def test_its_leak_is_caught(tmp_path: Path, name: str) -> None:
    pairs = related(tmp_path, LeakySystem(leak=LEAKS[name]), CASE.get(name, ROWS), name)
    assert Outcome.FAIL in {pair.outcome for pair in pairs}, reasons(pairs)
    assert name in reasons(pairs)


def test_the_soak_sees_what_a_repeat_does_not(tmp_path: Path) -> None:
    leaky = LeakySystem(leak=slow_memory)
    assert related(tmp_path, leaky, ROWS, "repeat")[0].outcome is Outcome.PASS


# --------------------------------------------------------------------------------------- liars


@dataclass
class Lying(LeakySystem):
    """Owns: the first run's plan; it returns that of every later run, whatever was asked."""

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> LyingSession:
        return LyingSession(self, cell, settings)


@dataclass
class LyingSession(LeakySession):
    def run(self, case: Case, prompts: Sequence[Encoded], **options: Any) -> SystemRun:
        run = super().run(case, prompts, **options)
        return replace(run, plan=self.told(run.plan, tuple(len(p.token_ids) for p in prompts)))

    def told(self, plan: Plan, lengths: Sequence[int]) -> Plan:
        """Every run is that of the whole case, one prompt after the other."""
        full = scheduled(LENGTHS, chunked=self.cell["chunk"] == "chunked")
        return full if len(lengths) == len(LENGTHS) or len(lengths) == 1 else plan


def test_a_server_that_is_only_the_offline_engine_is_vacuous(tmp_path: Path) -> None:
    class NoServer(LeakySystem):
        def serve(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> LeakySession:
            return self.open(cell, settings)

    (pair,) = related(tmp_path, NoServer(), ROWS, "entry point")
    assert pair.outcome is Outcome.VACUOUS
    assert "came from no request over HTTP" in pair.reason


def test_a_server_on_the_same_steps_is_held_to_the_same_bits(tmp_path: Path) -> None:
    (pair,) = related(tmp_path, LeakySystem(), ROWS, "entry point")
    assert (pair.tier, pair.outcome) == (Tier.EXACT, Outcome.PASS)
    plan = [[["0", 0, 4, 4], ["1", 0, 2, 2]]]
    served = [[["a/input[0]", 0, 4, 4], ["a/input[1]", 0, 2, 2]]]
    twice = [[["a/+text_2[0]", 0, 4, 4], ["b/+text_2[0]", 0, 2, 2]]]
    swapped = [[["a/input[1]", 0, 4, 4], ["a/input[0]", 0, 2, 2]]]
    assert same_steps(plan, served)
    assert not any(same_steps(plan, other) for other in (plan, twice, swapped, served * 2))


@pytest.mark.parametrize("name", ["alone", "split", "truncation"])
def test_a_system_that_runs_the_case_again_instead_is_vacuous(tmp_path: Path, name: str) -> None:
    pairs = related(tmp_path, Lying(), ROWS, name)
    assert Outcome.VACUOUS in {pair.outcome for pair in pairs}, reasons(pairs)


class Serial(Lying):
    """One prompt a step, whatever may run together."""

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> SerialSession:
        return SerialSession(self, cell, settings)


class SerialSession(LyingSession):
    def told(self, plan: Plan, lengths: Sequence[int]) -> Plan:
        return [[[str(i), 0, n, n]] for i, n in enumerate(lengths)]


def test_company_that_was_kept_out_is_vacuous_and_none_to_leave_is_inapplicable(
    tmp_path: Path,
) -> None:
    pairs = related(tmp_path, Serial(), ROWS, "company")
    assert {pair.outcome for pair in pairs} == {Outcome.VACUOUS}
    assert "shared no step with another" in reasons(pairs)
    (pair,) = related(tmp_path, Serial(), ROWS, "alone")
    assert pair.outcome is Outcome.INAPPLICABLE
    assert "shared no step in the case's own run either" in pair.reason


def test_twins_that_fill_whole_steps_have_no_step_to_share() -> None:
    """32 and 20 tokens in steps of 16: the first one's twin begins a step of its own."""
    plan = [
        [["0", 0, 16, 32]],
        [["0", 16, 16, 32]],
        [["1", 0, 16, 20]],
        [["1", 16, 4, 20]],
    ]
    twins = {p: [Match(prompt=p, follow_up=0), Match(prompt=p, follow_up=1)] for p in (0, 1)}
    told = RELATIONS["company"].reach(plan, twins[0])
    assert told == "a prompt of 32 tokens fills steps of 16, so that its twin never joins one"
    assert RELATIONS["company"].reach(plan, twins[1]) is None
    assert RELATIONS["company"].reach(plan, [Match(prompt=0, follow_up=1)]) is None


class Sorting(Lying):
    """Takes prompts by length, in whatever order they are asked."""

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> SortingSession:
        return SortingSession(self, cell, settings)


class SortingSession(LyingSession):
    def told(self, plan: Plan, lengths: Sequence[int]) -> Plan:
        places = sorted(range(len(lengths)), key=lambda index: lengths[index])
        return [[[str(i), 0, lengths[i], lengths[i]]] for i in places]


def test_an_order_that_was_not_taken_is_vacuous(tmp_path: Path) -> None:
    (pair,) = related(tmp_path, Sorting(), ROWS, "permutation")
    assert pair.outcome is Outcome.VACUOUS
    assert "both runs took the prompts in the same order" in pair.reason


def test_other_steps_are_no_repeat(tmp_path: Path) -> None:
    class Restless(Lying):
        def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> LyingSession:
            return RestlessSession(self, cell, settings)

    class RestlessSession(LyingSession):
        def told(self, plan: Plan, lengths: Sequence[int]) -> Plan:
            return plan if self.system.answered <= 16 * len(LENGTHS) else [*plan, []]

    pairs = related(tmp_path, Restless(), ROWS, "repeat")
    assert {pair.outcome for pair in pairs} == {Outcome.VACUOUS}
    assert "took other steps" in reasons(pairs)


# --------------------------------------------------------------------------- pairs of two texts


def test_a_system_that_reads_a_pair_alike_both_ways_fails(tmp_path: Path) -> None:
    (pair,) = related(tmp_path, LeakySystem(symmetric=True), PAIRS, "pair swap")
    assert pair.outcome is Outcome.FAIL
    assert "both questions are the same to float64" in pair.reason


# ------------------------------------------------------------------------------ the follow-ups


def asked(case: Case, *, causal: bool = True) -> Asked:
    system = LeakySystem()
    return Asked(
        case=case,
        prompts=system.encode(case),
        causal=causal,
        vocabulary=VOCABULARY,
        max_model_len=64,
        encode=system.encode,
        reserved=frozenset(range(50)),
    )


cases = st.builds(
    Case,
    task=st.sampled_from(("embed", "token_embed")),
    prompts=st.lists(
        st.builds(
            Prompt,
            tokens=st.lists(st.integers(50, 590), min_size=1, max_size=64).map(tuple),
        ),
        min_size=1,
        max_size=5,
    ).map(tuple),
)


@settings(max_examples=40, deadline=None)
@given(cases)
def test_follow_ups_are_well_formed_and_follow_from_the_case_alone(case: Case) -> None:
    for relation in RELATIONS.values():
        found = relation.follow_ups(asked(case))
        if isinstance(found, str):
            assert found, relation.name
            continue
        assert found == relation.follow_ups(asked(case))
        assert len({one.variant for one in found}) == len(found)
        for one in found:
            assert len(one.case.prompts) == len(one.prompts)
            assert one.matches
            for match in one.matches:
                mine = asked(case).prompts[match.prompt].token_ids
                other = one.prompts[match.follow_up].token_ids
                assert other == mine[: match.rows]
            for prompt in (*one.prompts, *(p for _, ps in one.before for p in ps)):
                assert 1 <= len(prompt.token_ids) <= 64
                assert not set(prompt.token_ids) & set(range(50))


def test_what_cannot_be_asked_says_why() -> None:
    one = replace(ROWS, prompts=ROWS.prompts[:1])
    short = replace(ROWS, prompts=(tokens(0, 1),))
    same = replace(ROWS, prompts=ROWS.prompts[:1] * 3)
    for name, case, told in (
        ("alone", one, "ran alone already"),
        ("split", one, "nothing to split"),
        ("permutation", same, "no two distinct prompts"),
        ("prefix", short, "each is one token"),
        ("truncation", short, "each is one token"),
        ("truncation", replace(ROWS, task="embed"), "returns one row"),
        ("pair swap", ROWS, "no pair of two different texts"),
        ("entry point", ROWS, "no server of its own"),
    ):
        found = RELATIONS[name].follow_ups(asked(case))
        assert isinstance(found, str)
        assert told in found
    found = RELATIONS["truncation"].follow_ups(asked(ROWS, causal=False))
    assert isinstance(found, str)
    assert "sees the whole prompt" in found


def test_only_swapped_pairs_expect_another_answer() -> None:
    others = [r.name for r in RELATIONS.values() if r.expects is Expectation.OTHER]
    assert others == ["pair swap"]
    exact = {r.name for r in RELATIONS.values() if r.tier is Tier.EXACT}
    assert exact == {"repeat", "soak"}
    assert Match(prompt=0, follow_up=0).rows is None
