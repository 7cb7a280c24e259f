"""Stages of a model, shared use, and the arguments of `load_model`.

Passes wrongly if every stage held the whole model and ran its own layers only. Ruled out by
suites/meta/test_suites_can_fail.py: `a-stage-holds-all-layers`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.errors import ConfigurationError
from engine.models import AttentionMetadata, LayerCache, load_model
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.generate import GENERATORS
from suites.unit.models.packed import PackedRun, prompt

NAMES = tuple(GENERATORS)


@pytest.mark.parametrize("name", NAMES)
def test_stages_hold_the_models_tensors_and_no_others(name: str) -> None:
    whole = load_model(path_of(name))
    count = whole.config.num_layers
    stages = [load_model(path_of(name), layers=r) for r in (range(1), range(1, 3), range(3, count))]
    assert [stage.first_layer for stage in stages] == [0, 1, 3]
    assert [len(stage.blocks) for stage in stages] == [1, 2, count - 3]
    for stage in stages:
        for offset, block in enumerate(stage.blocks):
            twin = whole.blocks[stage.first_layer + offset].state_dict()
            for key, tensor in block.state_dict().items():
                assert torch.equal(tensor, twin[key])
    held = sum(p.numel() for stage in stages for p in stage.parameters())
    assert held == sum(p.numel() for p in whole.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_a_stage_refuses_what_it_does_not_hold(name: str) -> None:
    middle = load_model(path_of(name), layers=range(1, 3))
    ids = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ConfigurationError, match=r"embedding .*layers 1\.\.2 of 4"):
        middle.embed(ids, ids, ids)
    with pytest.raises(ConfigurationError, match=r"final norm .*layers 1\.\.2 of 4"):
        middle.final_norm(torch.zeros(2, 64))


@pytest.mark.parametrize("name", NAMES)
def test_the_four_phases_are_the_block(name: str) -> None:
    model = load_model(path_of(name))
    config, block = model.config, model.blocks[0]
    ids, positions = torch.tensor(prompt(6)), torch.arange(6)
    with torch.inference_mode():
        x = model.embed(ids, torch.zeros_like(ids), positions)
        cos, sin = (table[block.kind.rotary] for table in model.rotary(positions))
        window = block.kind.window
        layout = (torch.tensor([0, 6]), torch.tensor([0]), torch.tensor([[0]]), positions)
        pairs = [
            [torch.zeros(16, config.num_kv_heads, config.head_dim) for _ in "kv"] for _ in "ab"
        ]
        q, k, v = block.attention_inputs(x, cos, sin)
        assert q.shape == (6, config.num_heads, config.head_dim)
        assert k.shape == v.shape == (6, config.num_kv_heads, config.head_dim)
        cache = LayerCache(keys=pairs[0][0], values=pairs[0][1], block_size=16)
        names = ("row_offsets", "context_starts", "block_tables", "slot_mapping")
        meta = AttentionMetadata(**dict(zip(names, layout, strict=True)))
        attended = block.attend(q, k, v, cache, meta, window)
        joined = block.add_attention(x, block.attention_output(attended))
        phases = block.add_feed_forward(joined, block.feed_forward(joined))
        whole = block(x, cos, sin, *pairs[1], *layout, 16, window)
    assert torch.equal(phases, whole)
    assert all(torch.equal(a, b) for a, b in zip(*pairs, strict=True))
    assert bool(pairs[0][0].count_nonzero()) == config.causal


def test_use_changes_nothing_in_the_model() -> None:
    model = load_model(path_of("tiny-qwen3"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = PackedRun(model=model, prompts=[prompt(20)], chunk=7).hidden()[0]
    PackedRun(model=model, prompts=[prompt(33)], block_size=4).hidden()
    again = PackedRun(model=model, prompts=[prompt(20)], chunk=7).hidden()[0]
    assert torch.equal(first, again)
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
    assert not any(p.requires_grad for p in model.parameters())
    assert not model.training


@pytest.mark.parametrize("block_size", [1, 4, 64])
def test_block_size_changes_no_bit(block_size: int) -> None:
    model = load_model(path_of("tiny-qwen3"))
    prompts = [prompt(20), prompt(33)]
    paged = PackedRun(model=model, prompts=prompts, chunk=7, block_size=block_size).hidden()
    usual = PackedRun(model=model, prompts=prompts, chunk=7).hidden()
    assert all(torch.equal(a, b) for a, b in zip(paged, usual, strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "int8"}, "dtype='int8'.*float32"),
        ({"attention": "flash"}, r"\['naive', 'sdpa', 'triton'\]"),
        ({"attention": "naive", "batch_invariant": True}, "Choose attention='sdpa'"),
        ({"layers": range(2, 9)}, r"range\(2, 9\): expected a non-empty run of 0\.\.3"),
        ({"layers": range(2, 2)}, "non-empty"),
        ({"layers": range(0, 4, 2)}, "non-empty"),
        ({"dtype": "bfloat16", "batch_invariant": True}, "dtype='bfloat16'.*float32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_model(path_of("tiny-qwen3"), **arguments)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_every_dtype_is_kept_from_embedding_to_final_norm(dtype: str) -> None:
    for name in NAMES:
        model = load_model(path_of(name), dtype=dtype)
        hidden = PackedRun(model=model, prompts=[prompt(20)]).hidden()[0]
        assert hidden.dtype == getattr(torch, dtype)
        assert bool(torch.isfinite(hidden).all())
        truth = PackedRun(model=load_model(path_of(name)), prompts=[prompt(20)]).hidden()[0]
        # bfloat16 has 8 significant bits: 2^-9 a rounding, over 4 layers of a dozen roundings.
        assert float((hidden - truth).norm() / truth.norm()) < 0.1
