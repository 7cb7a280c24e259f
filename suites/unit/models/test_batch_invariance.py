"""`batch_invariant`: chunk size and company change no bit, eager and compiled.

Passes wrongly if this machine's arithmetic never depended on company, so that the paddings were not
needed. Ruled out by `test_each_padding_is_needed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch

from engine.attention import op
from engine.models import Model, load_model
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.generate import GENERATORS
from suites.unit import few_rows
from suites.unit.models.packed import Call, PackedRun, eager, prompt

LENGTH = 150
CHUNKS = (1, 7, 64)


@cache
def invariant_model(name: str = "tiny-qwen3") -> Model:
    return load_model(path_of(name), batch_invariant=True)


@pytest.fixture(scope="module", params=["eager", "compiled"])
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    if request.param == "eager":
        yield eager
        return
    torch._dynamo.reset()

    def block_call(block: torch.nn.Module, *tensors: Any) -> torch.Tensor:
        out: torch.Tensor = block(*tensors)
        return out

    yield torch.compile(block_call, fullgraph=True, dynamic=True)
    torch._dynamo.reset()


def whole(model: Model, call: Call) -> torch.Tensor:
    return PackedRun(model=model, prompts=[prompt(LENGTH)], call=call).hidden()[0]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunk_size_changes_no_bit(chunk: int, call: Call) -> None:
    model = invariant_model()
    run = PackedRun(model=model, prompts=[prompt(LENGTH)], chunk=chunk, call=call)
    assert torch.equal(run.hidden()[0], whole(model, call))
    assert run.steps == -(-LENGTH // chunk)  # it really was cut


@pytest.mark.parametrize("name", GENERATORS)
def test_company_changes_no_bit(name: str) -> None:
    model = invariant_model(name)
    prompts = [prompt(n, seed=n) for n in (1, LENGTH, 9, 2, 33)]
    for ids, hidden in zip(prompts, PackedRun(model=model, prompts=prompts).hidden(), strict=True):
        assert torch.equal(hidden, PackedRun(model=model, prompts=[ids]).hidden()[0])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunk_size_changes_no_bit_behind_a_window(chunk: int) -> None:
    """A window of 40 tokens: most chunks begin with keys that none of their rows sees."""
    model, ids = invariant_model("tiny-mistral"), prompt(LENGTH)
    alone = PackedRun(model=model, prompts=[ids]).hidden()[0]
    chunked = PackedRun(model=model, prompts=[ids], chunk=chunk)
    assert torch.equal(chunked.hidden()[0], alone)


def test_keys_beyond_one_tile_change_no_bit() -> None:
    model = invariant_model()
    ids = prompt(op.KEY_TILE + 100)
    alone = PackedRun(model=model, prompts=[ids]).hidden()[0]
    for chunk in (op.KEY_TILE - 3, 200):
        chunked = PackedRun(model=model, prompts=[ids], chunk=chunk).hidden()[0]
        assert torch.equal(chunked, alone)


def _without_row_padding(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    few_rows.plant(monkeypatch)
    return {"chunk": 1, "min_rows": 1}


def _without_query_padding(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    few_rows.plant(monkeypatch)
    monkeypatch.setattr(op, "MIN_ROWS", 1)
    return {"chunk": 7}


def _without_key_padding(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(op, "KEY_TILE", 1)
    return {"chunk": 64}


@pytest.mark.parametrize(
    "remove", [_without_row_padding, _without_query_padding, _without_key_padding]
)
def test_each_padding_is_needed(
    remove: Callable[[pytest.MonkeyPatch], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above can fail: without any one of the paddings the bits differ."""
    model = invariant_model()
    expected = whole(model, eager)
    options = remove(monkeypatch)
    chunked = PackedRun(model=model, prompts=[prompt(LENGTH)], **options).hidden()[0]
    assert not torch.equal(chunked, expected)


def test_with_the_paddings_few_rows_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    model = invariant_model()
    expected = whole(model, eager)
    few_rows.plant(monkeypatch)
    for chunk in CHUNKS:
        run = PackedRun(model=model, prompts=[prompt(LENGTH)], chunk=chunk)
        assert torch.equal(run.hidden()[0], expected)


def test_the_ordinary_mode_depends_on_chunk_size() -> None:
    model = load_model(path_of("tiny-qwen3"))
    expected = whole(model, eager)
    chunked = PackedRun(model=model, prompts=[prompt(LENGTH)], chunk=1, min_rows=2).hidden()[0]
    assert not torch.equal(chunked, expected)
