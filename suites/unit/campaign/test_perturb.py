"""Power is proved chunk by chunk: the first, the middle and the last are changed.

Passes wrongly if one changed token was enough for a chunk to count as changed. Ruled out by
suites/meta/test_suites_can_fail.py: `one-token-of-a-chunk-is-changed`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.campaign.perturb import (
    MOST_OTHERS,
    PERTURBATIONS,
    lone_tokens,
    perturbed,
    places,
    read,
    written,
)
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.sizes import sizes_of
from harness.systems.base import Encoded


def test_a_long_prompt_is_changed_at_the_start_of_three_chunks() -> None:
    assert [places(name, [70], 16)[0] for name in PERTURBATIONS] == [0, 32, 64]


def test_a_chunk_that_is_another_is_not_changed_twice() -> None:
    lengths = [1, 16, 17, 33]
    assert dict(places("first chunk", lengths, 16)) == {0: 0, 1: 0, 2: 0, 3: 0}
    assert dict(places("last chunk", lengths, 16)) == {2: 16, 3: 32}
    assert dict(places("middle chunk", lengths, 16)) == {3: 16}


def test_beyond_a_models_reach_nothing_is_changed() -> None:
    """200 tokens of which the last can see 78: what is changed begins among those."""
    found = [places(name, [200], 16, reach=78)[0] for name in PERTURBATIONS]
    assert found == [128, 160, 192]
    assert [places(name, [70], 16, reach=78)[0] for name in PERTURBATIONS] == [0, 32, 64]
    assert places("first chunk", [40], 16, reach=1) == {0: 32}  # at least the last chunk


def test_a_lone_token_becomes_one_of_the_case_that_is_far_from_it() -> None:
    encoded = [Encoded(token_ids=tokens) for tokens in ((7,), (7, 7), (5, 9, 400), (8,))]
    _, changed = perturbed("first chunk", encoded, 16)
    assert [prompt.token_ids for prompt in changed] == [(9,), (9, 9), (9, 400, 5), (400,)]
    _, alone = perturbed("first chunk", [Encoded(token_ids=(0, 0))], 16)
    assert alone[0].token_ids == (1, 1)


def test_a_lone_token_is_tried_against_several_others_and_no_other_prompt_is() -> None:
    encoded = [Encoded(token_ids=tokens) for tokens in ((7,), (7, 7), tuple(range(90, 190)), (8,))]
    chosen, changed = lone_tokens(encoded)
    assert chosen == ((0, 0),) * MOST_OTHERS + ((3, 0),) * MOST_OTHERS
    assert read(written(chosen)) == chosen
    for (prompt, _), new in zip(chosen, changed, strict=True):
        assert len(new.token_ids) == 1
        assert new.token_ids != encoded[prompt].token_ids
    assert len(set(changed[:MOST_OTHERS])) == MOST_OTHERS


@pytest.mark.parametrize(("token", "others"), [(0, 0), (1, 1), (30_000, MOST_OTHERS)])
def test_a_case_of_one_lone_token_is_tried_against_smaller_ids(token: int, others: int) -> None:
    _, changed = lone_tokens([Encoded(token_ids=(token,))])
    assert len({new.token_ids for new in changed}) == len(changed) == others
    assert all(0 <= new.token_ids[0] < token for new in changed)


@pytest.mark.parametrize(
    ("name", "reach"),
    [("tiny-mistral", 39 * 2), ("tiny-qwen2", None), ("tiny-gemma3", None), ("tiny-bert", None)],
)
def test_reach_is_read_from_the_config(name: str, reach: int | None) -> None:
    assert sizes_of(path_of(name)).reach == reach


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=60), min_size=1, max_size=4),
    st.integers(1, 20),
)
def test_every_token_of_the_chosen_chunk_changes_and_no_other(
    prompts: list[list[int]], chunk: int
) -> None:
    encoded = [Encoded(token_ids=tuple(tokens)) for tokens in prompts]
    lengths = [len(tokens) for tokens in prompts]
    for name in PERTURBATIONS:
        chosen, changed = perturbed(name, encoded, chunk)
        wanted = places(name, lengths, chunk)
        assert chosen == wanted
        assert dict(read(written(tuple(chosen.items())))) == wanted
        for prompt, new in zip(chosen, changed, strict=True):
            old = encoded[prompt].token_ids
            differing = [
                i
                for i, pair in enumerate(zip(old, new.token_ids, strict=True))
                if pair[0] != pair[1]
            ]
            end = min(wanted[prompt] + chunk, len(old))
            assert differing == list(range(wanted[prompt], end))
            assert min(new.token_ids) >= 0
    assert len(places("first chunk", lengths, chunk)) == len(prompts)
