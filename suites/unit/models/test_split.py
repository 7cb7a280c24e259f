"""Tensor ranks: each reads its part of a layer, the parts are the whole, their sums the layer.

Passes wrongly if a rank could read another rank's part, or the whole. Ruled out by
suites/meta/test_suites_can_fail.py: `every-rank-reads-the-first-part`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine.errors import ConfigurationError
from engine.models import Block, LayerCache, ModelConfig, load_model
from engine.models.base import AttentionMetadata
from engine.models.decoder import DecoderBlock
from engine.models.split import layer_reader
from engine.weights import Checkpoint
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.generate import GENERATORS
from suites.unit.models.packed import prompt

RANKS = 2
ONE_KV_HEAD = "small-qwen3"
"""Refused, see below: one head cannot be divided."""
NAMES = tuple(name for name in GENERATORS if name != ONE_KV_HEAD)


def parts(name: str, **options: Any) -> list[Any]:
    return [
        load_model(path_of(name), tensor_rank=rank, tensor_ranks=RANKS, **options)
        for rank in range(RANKS)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_all_ranks_are_the_whole(name: str) -> None:
    """By content: every column sum and row sum of the whole is found in the parts exactly once."""
    whole, ranks = load_model(path_of(name)), parts(name)
    for index, block in enumerate(whole.blocks):
        for key, tensor in block.state_dict().items():
            held = [rank.blocks[index].state_dict()[key] for rank in ranks]
            if held[0].shape == tensor.shape:
                same = torch.equal(held[0], tensor)
                zero = not held[1].count_nonzero()  # the bias of a divided product, added once
                assert same, key
                assert zero or torch.equal(held[1], tensor), key
                continue
            dim = 0 if held[0].shape[0] < tensor.shape[0] else tensor.dim() - 1
            rows = torch.cat(held, dim=dim).movedim(dim, 0).flatten(1) if tensor.dim() > 1 else None
            if rows is None:
                assert torch.equal(torch.cat(held).sort().values, tensor.sort().values), key
                continue
            expected = tensor.movedim(dim, 0).flatten(1)
            assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, expected.tolist())), key
    for rank in ranks:
        shared = {n: t for n, t in rank.state_dict().items() if not n.startswith("blocks.")}
        assert all(torch.equal(t, whole.state_dict()[n]) for n, t in shared.items())


@pytest.mark.parametrize("name", NAMES)
def test_the_ranks_sums_are_the_layer(name: str) -> None:
    """In float64, where the order of a sum is of no weight."""
    whole = load_model(path_of(name), dtype="float64", attention="naive")
    ranks = parts(name, dtype="float64", attention="naive")
    ids, positions = torch.tensor(prompt(6)), torch.arange(6)
    meta = AttentionMetadata(
        row_offsets=torch.tensor([0, 6]),
        context_starts=torch.tensor([0]),
        block_tables=torch.tensor([[0]]),
        slot_mapping=positions,
    )

    def attend(block: Block, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        q, k, v = block.attention_inputs(x, cos, sin)
        keys, values = (torch.zeros(16, *k.shape[1:], dtype=k.dtype) for _ in "kv")
        cache = LayerCache(keys=keys, values=values, block_size=16)
        return block.attention_output(block.attend(q, k, v, cache, meta, 0))

    with torch.inference_mode():
        x = whole.embed(ids, torch.zeros_like(ids), positions)
        angles = [table[0] for table in whole.rotary(positions)]
        for index, block in enumerate(whole.blocks):
            mine = [rank.blocks[index] for rank in ranks]
            y, summands = attend(block, x, *angles), [attend(b, x, *angles) for b in mine]
            # Half the heads are no small part of the output: a rank that did it all would show.
            assert all(float((s - y).norm() / y.norm()) > 0.1 for s in summands)
            assert float((summands[0] + summands[1] - y).norm() / y.norm()) < 1e-13
            x = block.add_attention(x, y)
            y, summands = block.feed_forward(x), [b.feed_forward(x) for b in mine]
            assert float((summands[0] + summands[1] - y).norm() / y.norm()) < 1e-13
            x = block.add_feed_forward(x, y)


class Fused(Block):
    """Reads nothing but what `layer_reader` gives it."""

    column_split = {"qkv": 3, "up": 1}  # noqa: RUF012 - a table that is only read
    row_split = ("down",)


@pytest.mark.parametrize("rank", range(RANKS))
def test_a_fused_product_is_divided_within_each_of_its_parts(tmp_path: Path, rank: int) -> None:
    tensors = {
        "l.qkv.weight": torch.arange(24.0).view(12, 2),
        "l.qkv.bias": torch.arange(12.0),
        "l.down.weight": torch.arange(8.0).view(2, 4),
        "l.down.bias": torch.tensor([5.0, 6.0]),
        "l.norm.weight": torch.arange(4.0),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    checkpoint = Checkpoint(tmp_path, tensor_rank=rank, tensor_ranks=RANKS)
    read = layer_reader(checkpoint, Fused, "l.", torch.float32)
    rows = [part * 4 + rank * 2 + row for part in range(3) for row in range(2)]
    assert torch.equal(read("qkv.weight"), tensors["l.qkv.weight"][rows])
    assert torch.equal(read("qkv.bias"), tensors["l.qkv.bias"][rows])
    half = slice(rank * 2, rank * 2 + 2)
    assert torch.equal(read("down.weight"), tensors["l.down.weight"][:, half])
    assert torch.equal(read("down.bias"), tensors["l.down.bias"] * (rank == 0))
    assert torch.equal(read("norm.weight"), tensors["l.norm.weight"])


def test_only_the_part_is_read(tmp_path: Path) -> None:
    """A value that is not finite is refused by the rank that holds it, and not seen by another."""
    weight = torch.ones(4, 2)
    weight[3, 1] = torch.nan
    save_file({"l.up.weight": weight}, tmp_path / "model.safetensors")
    ranks = [Checkpoint(tmp_path, tensor_rank=r, tensor_ranks=RANKS) for r in range(RANKS)]
    readers = [layer_reader(c, Fused, "l.", torch.float32) for c in ranks]
    assert torch.equal(readers[0]("up.weight"), torch.ones(2, 2))
    with pytest.raises(Exception, match=r"l\.up\.weight .*1 values of 4"):
        readers[1]("up.weight")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tensor_ranks": 4}, r"4 query heads, 2 key and value heads, 192 .*one of \[1, 2\]"),
        ({"tensor_ranks": 3}, r"tensor_parallel_size=3 does not divide Qwen3ForCausalLM"),
        ({"tensor_ranks": 2, "tensor_rank": 2}, "expected 0 to 1"),
    ],
)
def test_what_cannot_be_divided_is_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_model(path_of("tiny-qwen3"), **arguments)


def test_one_head_is_not_divided() -> None:
    with pytest.raises(ConfigurationError, match=r"1 key and value heads.*choose one of \[1\]"):
        parts(ONE_KV_HEAD)


def test_a_family_without_a_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecoderBlock, "column_split", {})
    with pytest.raises(ConfigurationError, match="Qwen3ForCausalLM is not divided over tensor"):
        load_model(path_of("tiny-qwen3"), tensor_ranks=2)


def test_a_ranks_sizes() -> None:
    whole: ModelConfig = load_model(path_of("tiny-qwen3")).config
    part = whole.divided(2)
    assert (part.num_heads, part.num_kv_heads, part.intermediate_size) == (2, 1, 96)
    assert (part.hidden_size, part.head_dim) == (whole.hidden_size, whole.head_dim)
