"""The verdict on a follow-up, branch by branch: what it says, and what it was measured on.

Passes wrongly if every follow-up failed, or the judge called any two answers another. Ruled out by
`test_a_follow_up_with_the_same_answers_passes` and suites/meta/test_suites_can_fail.py:
`answers-to-another-question-are-not-held-to-it`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.judge.output import Output
from harness.judge.related import judge_relation
from harness.record import (
    Expectation,
    Match,
    Outcome,
    PairRecord,
    PowerRecord,
    RelationRecord,
    Tier,
)
from suites.unit.axes.witnesses import LENGTHS, honest
from suites.unit.judge.pairs import BASE, PP, World, edited, fails, rounded, run

EVERY = tuple(Match(prompt=i, follow_up=i) for i in range(len(LENGTHS)))


@pytest.fixture(scope="module")
def embed() -> World:
    return World.of("embed", normalize=False)


@pytest.fixture(scope="module")
def tokens() -> World:
    return World.of("token_embed", normalize=False)


def asked(**changes: Any) -> RelationRecord:
    fields: dict[str, Any] = {
        "case_id": "c",
        "checkpoint": "sample",
        "relation": "company",
        "variant": "alone",
        "tier": Tier.REORDERED,
        "expects": Expectation.SAME,
        "of": "one",
        "follow_up": "two",
        "case": {},
        "matches": EVERY,
        **changes,
    }
    return RelationRecord(**fields)


def judged(
    world: World, outputs: Any, relation: RelationRecord | None = None, **changes: Any
) -> PairRecord:
    """The follow-up's outputs held to the case's."""
    options: dict[str, Any] = {
        "a": run(BASE, world.base, "one"),
        "b": run(BASE, outputs, "two"),
        "oracle": world.truth,
        "power": world.power,
        "bounds": world.bounds,
        **changes,
    }
    a, b = options.pop("a"), options.pop("b")
    return judge_relation(world.subject, a, b, relation or asked(), **options)


def test_a_follow_up_with_the_same_answers_passes(embed: World) -> None:
    record = judged(embed, rounded(embed.truth, seed=9))
    assert record.outcome is Outcome.PASS, record
    assert record.reason == ""
    assert (record.a, record.b, record.axes) == ("one", "two", ())
    assert record.cell_a == record.cell_b == dict(BASE)
    assert record.num_compared == sum(output.size for output in embed.base)
    assert record.measurements


def test_a_wrong_answer_is_named_with_its_relation(embed: World) -> None:
    wrong = edited(embed.base, 2, -embed.base[2].data)
    record = judged(embed, wrong)
    fails(record, "company, alone: ")
    assert record.worst_prompt == 2


def test_the_first_reason_counts(embed: World) -> None:
    """A crash, then what was known before, then what the run attests, then the machine."""
    right = rounded(embed.truth, seed=9)
    broken = replace(run(BASE, (), "two"), error="it broke")
    elsewhere = run(PP, right, "two")
    both = {"inapplicable": "known before", "unwitnessed": "the same situation"}
    for changes, outcome, text in (
        ({"b": broken, **both}, Outcome.ERROR, "side B (two): it broke"),
        ({"b": elsewhere, **both}, Outcome.INAPPLICABLE, "known before"),
        ({"b": elsewhere, "unwitnessed": "the same situation"}, Outcome.VACUOUS, "the same sit"),
        ({"b": elsewhere}, Outcome.ERROR, "the follow-up ran in"),
    ):
        record = judged(embed, right, **changes)
        assert (record.outcome, text in record.reason) == (outcome, True), record


def test_another_machine_or_setting_is_no_fair_follow_up(embed: World) -> None:
    right = rounded(embed.truth, seed=9)
    settings = {"executor": "inline", "inputs": "ring"}
    record = judged(embed, right, b=run(BASE, right, "two", settings=settings))
    assert record.outcome is Outcome.ERROR
    assert "differs in the settings inputs" in record.reason
    named = {"executor": "inline", "inputs": "fenced", "relation": "company"}
    record = judged(embed, right, b=run(BASE, right, "two", settings=named))
    assert record.outcome is Outcome.PASS, record


def test_bits_are_asked_for_only_where_both_sides_fix_their_order(embed: World) -> None:
    """And only of the same question."""
    fixed = honest(BASE, flags={**honest(BASE).get("flags", {}), "batch_invariant": "on"})
    off = rounded(embed.truth, seed=9)
    one, two = run(BASE, embed.base, "one", witness=fixed), run(BASE, off, "two", witness=fixed)
    assert judged(embed, off, a=one, b=two).tier is Tier.EXACT
    fails(judged(embed, off, a=one, b=two), "company, alone: ")
    assert judged(embed, off, a=one).tier is Tier.REORDERED
    assert judged(embed, off, b=two).tier is Tier.REORDERED
    other = asked(expects=Expectation.OTHER)
    assert judged(embed, off, other, a=one, b=two, truth=embed.truth).tier is Tier.REORDERED


def test_too_few_outputs_to_match_fail(embed: World) -> None:
    last = len(LENGTHS) - 1
    for match in (Match(prompt=0, follow_up=last + 1), Match(prompt=last + 1, follow_up=0)):
        fails(judged(embed, embed.base, asked(matches=(match,))), "5 and 5 outputs, too few")
    fails(judged(embed, embed.base, asked(matches=())), "too few to match")
    only = judged(embed, embed.base[:1], asked(matches=(Match(prompt=0, follow_up=0),)))
    assert only.outcome is Outcome.PASS, only
    assert only.num_compared == embed.base[0].size


def test_matches_say_which_answers_which(embed: World) -> None:
    """The other way round: right with these matches, exchanged without."""
    turned = rounded(embed.truth, seed=9)[::-1]
    backwards = tuple(Match(prompt=m.prompt, follow_up=4 - m.prompt) for m in EVERY)
    assert judged(embed, turned, asked(matches=backwards)).outcome is Outcome.PASS
    fails(judged(embed, turned), "outputs come back in another order")


def test_only_the_first_rows_answer_where_a_match_says_so(tokens: World) -> None:
    short = tuple(Output.of(output.data[:5]) for output in rounded(tokens.truth, seed=9))
    five = tuple(replace(match, rows=5) for match in EVERY)
    record = judged(tokens, short, asked(matches=five))
    assert record.outcome is Outcome.PASS, record
    assert record.num_compared == sum(output.size for output in short)
    fails(judged(tokens, short), "expected one row a token")
    last = edited(short, 1, np.concatenate([short[1].data[:4], -short[1].data[4:]]))
    fails(judged(tokens, last, asked(matches=five)), "company, alone: ")


# ------------------------------------------------------------------------- another question


def another(world: World, outputs: Any, **changes: Any) -> PairRecord:
    """Held to float64's answers to the other question, which are far from the first ones."""
    options = {"truth": rounded(world.truth, size=0.5, seed=3, dtype="float64"), **changes}
    return judged(world, outputs, asked(expects=Expectation.OTHER), **options)


def right_other(world: World) -> tuple[Output, ...]:
    return rounded(rounded(world.truth, size=0.5, seed=3, dtype="float64"), seed=5)


def test_the_right_answer_to_another_question_passes(embed: World) -> None:
    record = another(embed, right_other(embed))
    assert record.outcome is Outcome.PASS, record
    assert record.reason == ""
    assert record.num_compared == sum(output.size for output in embed.base)
    assert [m.metric for m in record.measurements] == ["oracle_error", "movement"] * len(EVERY)
    off, moved = record.measurements[:2]
    assert off.bound is not None
    assert 0 < off.value <= off.bound
    assert moved.bound is None
    assert moved.value == pytest.approx(0.5)
    assert moved.why == "from float64's answer to one to the other"
    assert record.worst_prompt == 0


def test_the_first_answer_given_again_is_told_from_a_merely_wrong_one(embed: World) -> None:
    record = another(embed, edited(right_other(embed), 1, embed.base[1].data))
    fails(record, "prompt 1: the other question's answer is the first one's, bound ")
    record = another(embed, edited(right_other(embed), 1, -embed.base[1].data))
    fails(record, "prompt 1: the other question's answer is ")
    assert "first one's" not in record.reason
    assert "from float64's, bound " in record.reason
    assert "prompt 0" not in record.reason


def test_questions_that_float64_cannot_tell_apart_say_nothing(embed: World) -> None:
    near = rounded(embed.truth, size=1e-9, seed=3, dtype="float64")
    record = another(embed, right_other(embed), truth=near)
    assert record.outcome is Outcome.INAPPLICABLE
    assert "float64's answers to both questions are only 1e-09 apart" in record.reason
    fails(another(embed, embed.base, truth=embed.truth), "the same to float64: same tokens")


def test_another_question_needs_float64s_answers_to_both(embed: World) -> None:
    for changes in ({"truth": None}, {"oracle": None}, {"truth": embed.truth[:4]}):
        record = another(embed, right_other(embed), **changes)
        assert record.outcome is Outcome.ERROR
        assert record.reason == "company, alone: no float64 answer to both questions"


def test_another_question_needs_power_too(embed: World) -> None:
    record = another(embed, right_other(embed), power=None)
    assert record.outcome is Outcome.VACUOUS
    assert "no proof of power" in record.reason
    blind: PowerRecord = replace(embed.power, blind=True)
    assert another(embed, right_other(embed), power=blind).outcome is Outcome.VACUOUS
    fails(another(embed, embed.base, power=None), "the first one's")


def test_a_race_fails_whatever_the_numbers(embed: World) -> None:
    right = right_other(embed)
    witness = honest(BASE)
    witness["ranks"] = [{**rank, "hazards": ["read before written"]} for rank in witness["ranks"]]
    fails(another(embed, right, b=run(BASE, right, "two", witness=witness)), "read before written")
