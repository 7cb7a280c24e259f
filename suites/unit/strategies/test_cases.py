"""Cases stay inside their space, aim where they are told and leave ownership bugs visible.

Passes wrongly if any case hit the class that is aimed at by chance, or no prompt of ids was looked
at. Ruled out by suites/meta/test_suites_can_fail.py: `cases-are-not-aimed`,
`reserved-ids-are-drawn`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.case import Case, case_from_json
from harness.strategies import CaseSpace, Edges, boundaries_of, cases, draw_cases
from harness.strategies.cases import MAX_PAIRS, PAIR_TASKS, tokens_of
from harness.strategies.texts import AWKWARD, CODE, SENTENCES, text_pairs, texts, utf8_bytes

EDGES = Edges(chunk=16, budget=64, block_size=16, max_len=96)
SPACE = CaseSpace(
    tasks=("embed", "token_embed", "classify", "score"),
    vocab_size=200,
    edges=EDGES,
    reserved=frozenset({0, 1, 2}),
    max_case_tokens=250,
    dimensions=(8,),
)
IDS = CaseSpace(tasks=("embed",), vocab_size=200, edges=EDGES, texts=False)


def lengths_of(case: Case) -> list[int]:
    """Tokens of every prompt; of a text the upper bound that the space counts by."""
    found = []
    for prompt in case.prompts:
        if prompt.tokens is not None:
            found.append(len(prompt.tokens))
        else:
            text = prompt.text or f"{prompt.query}{prompt.document}"
            found.append(utf8_bytes(text))
    return found


@pytest.fixture(scope="module")
def drawn() -> list[Case]:
    return draw_cases(SPACE, 3 * len(SPACE.classes), seed=5)


@settings(max_examples=20)
@given(cases(SPACE))
def test_a_case_stays_inside_its_space(case: Case) -> None:
    assert case.task in SPACE.tasks
    lengths = lengths_of(case)
    assert all(1 <= length <= EDGES.max_len for length in lengths)
    assert sum(lengths) <= 250
    for prompt in case.prompts:
        assert all(3 <= token < 200 for token in prompt.tokens or ())
        assert (prompt.query is not None) == (case.task == "score")
    assert case_from_json(case.to_json()) == case


@settings(max_examples=20)
@given(st.data(), st.sampled_from(IDS.classes))
def test_a_case_hits_the_class_it_aims_at(data: st.DataObject, focus: str) -> None:
    case = data.draw(cases(IDS, focus=focus))
    assert focus in boundaries_of(lengths_of(case), EDGES, case.prompts)


def test_whole_plans_have_three_steps_more_often_than_not(drawn: list[Case]) -> None:
    pairs = [case for case in drawn if case.task in PAIR_TASKS]
    assert pairs
    assert {len(case.prompts) for case in pairs} == {MAX_PAIRS}
    counts = Counter(len(case.prompts) for case in drawn if case.task not in PAIR_TASKS)
    assert set(counts) == {3, 4, 5}
    assert counts[5] > counts[3] + counts[4] > 0  # two prompts a step: 5 need 3 steps


def test_single_and_many_chunk_prompts_are_common(drawn: list[Case]) -> None:
    hit = Counter(
        name for case in drawn for name in boundaries_of(lengths_of(case), EDGES, case.prompts)
    )
    assert hit["three chunks or more"] > len(drawn) / 3
    assert hit["one chunk"] > len(drawn) / 3
    assert hit["one chunk beside three"] > len(drawn) / 6


def test_identity_heads_are_about_half(drawn: list[Case]) -> None:
    plain = sum(case.normalize is False or case.activation is False for case in drawn)
    assert len(drawn) / 4 < plain < 3 * len(drawn) / 4
    for case in drawn:
        vector = case.task in ("embed", "token_embed")
        assert (case.normalize is None) == (not vector)
        assert (case.activation is None) == vector
        assert case.dimensions in ((None, 8) if case.task == "embed" else (None,))
    assert any(case.dimensions == 8 for case in drawn)


def test_texts_pairs_and_ids_all_occur(drawn: list[Case]) -> None:
    prompts = [prompt for case in drawn for prompt in case.prompts]
    assert any(p.text is not None for p in prompts)
    assert any(p.query is not None for p in prompts)
    assert any(p.tokens is not None for p in prompts)


def test_encoders_are_not_asked_for_chunks() -> None:
    space = CaseSpace(tasks=("embed",), vocab_size=200, edges=EDGES, chunkable=False)
    assert not [name for name in space.classes if "chunk" in name]
    assert "length = budget" in space.classes


def test_a_case_limit_takes_long_classes_away() -> None:
    space = CaseSpace(tasks=("embed",), vocab_size=200, edges=EDGES, max_case_tokens=80)
    assert "near the maximum" not in space.classes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": ("translate",)}, "choose from embed"),
        ({"tasks": ()}, "choose from embed"),
        ({"tasks": ("score",), "texts": False}, "a pair needs texts"),
        ({"vocab_size": 1, "reserved": frozenset({0})}, "leaves no token id"),
    ],
)
def test_a_space_without_cases_is_refused(change: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"tasks": ("embed",), "vocab_size": 9, "edges": EDGES, **change}
    with pytest.raises(ValueError, match=message):
        CaseSpace(**fields)  # type: ignore[arg-type]


def test_token_ids_depend_on_the_seed_and_avoid_reserved_ones() -> None:
    assert tokens_of(SPACE, 50, 1) == tokens_of(SPACE, 50, 1) != tokens_of(SPACE, 50, 2)
    assert min(tokens_of(SPACE, 500, 1)) == 3


@settings(max_examples=20)
@given(st.data(), st.integers(1, 60))
def test_texts_fit_and_are_never_empty(data: st.DataObject, limit: int) -> None:
    text = data.draw(texts(max_tokens=limit))
    assert 1 <= utf8_bytes(text) <= limit
    query, document = data.draw(text_pairs(max_tokens=limit + 1))
    assert query
    assert document
    assert utf8_bytes(query) + utf8_bytes(document) <= limit + 1


def test_the_pool_is_multilingual_and_awkward() -> None:
    pool = "".join((*SENTENCES, *CODE, *AWKWARD))
    for script in ("а", "图", "か", "내", "ا", "ש", "म", "ε", "\u0301", "\u200d", "👩", "\t"):
        assert script in pool
