"""Remembered references: asked once, keyed by all they depend on, recomputed when damaged.

Passes wrongly if one remembered answer served every question. Ruled out by
suites/meta/test_suites_can_fail.py: `all-questions-share-an-answer`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from harness.checkpoints.catalogue import path_of
from harness.oracle import cache as cache_module
from harness.oracle.cache import CachedOracle, ResultStore
from harness.oracle.oracle import Oracle

IDS = [5, 300, 301, 302]


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(root=tmp_path / "oracle")


def test_answers_equal_the_oracles(store: ResultStore) -> None:
    plain, path = Oracle(path_of("tiny-qwen3")), path_of("tiny-qwen3")
    for _round in ("computed", "read back"):
        cached = CachedOracle(path, store=store)
        assert torch.equal(cached.hidden(IDS), plain.hidden(IDS))
        assert torch.equal(
            cached.embed(IDS, "MEAN", normalize=True), plain.embed(IDS, "MEAN", normalize=True)
        )
        assert torch.equal(
            cached.token_embed(IDS, normalize=False), plain.token_embed(IDS, normalize=False)
        )
        assert cached.yes_no_logit(IDS, 258, 257) == plain.yes_no_logit(IDS, 258, 257)
        for mine, theirs in zip(cached.layer_hidden(IDS), plain.layer_hidden(IDS), strict=True):
            assert torch.equal(mine, theirs)
    assert (store.misses, store.hits) == (5, 5)


def test_a_remembered_answer_needs_no_model(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    CachedOracle(path_of("tiny-bert"), store=store).hidden(IDS)

    def refuse(path: Path, *, dtype: str) -> Oracle:
        raise AssertionError(f"loaded {path} in {dtype}")

    monkeypatch.setattr(cache_module, "Oracle", refuse)
    CachedOracle(path_of("tiny-bert"), store=store).hidden(IDS)
    with pytest.raises(AssertionError, match="tiny-bert"):
        CachedOracle(path_of("tiny-bert"), store=store).hidden([*IDS, 9])


@pytest.mark.parametrize(
    "ask",
    [
        lambda o: o.hidden([*IDS, 6]),
        lambda o: o.hidden(IDS, [0, 0, 1, 1]),
        lambda o: o.hidden(IDS, [0, 1, 1, 1]),
        lambda o: o.embed(IDS, "MEAN", normalize=False),
        lambda o: o.embed(IDS, "CLS", normalize=False),
        lambda o: o.embed(IDS, "CLS", normalize=True),
        lambda o: o.token_embed(IDS, normalize=True),
        lambda o: o.token_embed(IDS, normalize=False),
        lambda o: o.layer_hidden(IDS),
    ],
)
def test_each_question_has_its_own_answer(
    store: ResultStore, ask: Callable[[CachedOracle], object]
) -> None:
    cached = CachedOracle(path_of("tiny-bert"), store=store)
    for other in (
        lambda o: o.hidden(IDS),
        lambda o: o.embed(IDS, "MEAN", normalize=True),
    ):
        other(cached)
    ask(cached)
    assert (store.misses, store.hits) == (3, 0)


def test_dtype_and_config_are_part_of_the_key(store: ResultStore, tmp_path: Path) -> None:
    path = path_of("tiny-qwen3")
    CachedOracle(path, store=store).hidden(IDS)
    CachedOracle(path, dtype="float32", store=store).hidden(IDS)
    assert store.misses == 2
    turned = tmp_path / "turned"
    shutil.copytree(path, turned)
    config = json.loads((turned / "config.json").read_text())
    (turned / "config.json").write_text(json.dumps(config | {"rope_theta": 10.0}))
    moved = CachedOracle(turned, store=store).hidden(IDS)
    assert store.misses == 3
    assert not torch.equal(moved, CachedOracle(path, store=store).hidden(IDS))


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),  # one bit of one number
        lambda content: content[: len(content) // 2],
        lambda content: b"",
    ],
)
def test_damaged_entries_are_computed_again(
    store: ResultStore, harm: Callable[[bytes], bytes]
) -> None:
    first = CachedOracle(path_of("tiny-bert"), store=store).hidden(IDS)
    (entry,) = store.root.rglob("*.safetensors")
    entry.write_bytes(harm(entry.read_bytes()))
    again = CachedOracle(path_of("tiny-bert"), store=store).hidden(IDS)
    assert torch.equal(again, first)
    assert (store.misses, store.hits) == (2, 0)
    assert [file.suffix for file in store.root.rglob("*") if file.is_file()] == [".safetensors"]
