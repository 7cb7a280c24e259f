"""The same softmax over the same keys, added up in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.controls.base import Where, control
from harness.faults.plant import Undo
from harness.faults.seams import is_chunked, nothing, on_block_parts

if TYPE_CHECKING:  # the table of controls is read without loading torch
    from collections.abc import Callable

    import torch

    from engine.models.base import AttentionMetadata, LayerCache
    from engine.runner import Runner


@control(
    name="attention-written-out",
    difference="scores, softmax and mixture as three operations instead of one fused kernel",
    allowed="plain and fused attention are the two kernels that every framework offers",
    where=Where.EAGER,
)
def attention_written_out(runner: Runner) -> Undo:
    return on_block_parts(runner, attend=_written_out)


@control(
    name="attention-written-out-bidirectional",
    difference="as attention-written-out, without a mask",
    allowed="plain and fused attention are the two kernels that every framework offers",
    where=Where.EAGER,
    checkpoint="tiny-bert",
)
def attention_written_out_bidirectional(runner: Runner) -> Undo:
    return on_block_parts(runner, attend=_written_out)


@control(
    name="chunks-attend-written-out",
    difference="chunked cells attend by another kernel than whole ones",
    allowed="engines have kernels of their own for prompts that go on from cached keys",
    where=Where.CHUNKED,
)
def chunks_attend_written_out(runner: Runner) -> Undo:
    return on_block_parts(runner, attend=_written_out) if is_chunked(runner) else nothing


@control(
    name="attention-in-tiles-of-16",
    difference="keys are taken sixteen at a time under a running maximum, as FlashAttention does",
    allowed="the size of a tile follows the hardware (arXiv:2205.14135, section 3.1)",
    where=Where.CHUNKED,
)
def attention_in_tiles_of_16(runner: Runner) -> Undo:
    return _in_tiles(runner, 16) if is_chunked(runner) else nothing


@control(
    name="attention-in-tiles-of-48",
    difference="as attention-in-tiles-of-16, with tiles that are no multiple of a KV block",
    allowed="the size of a tile follows the hardware (arXiv:2205.14135, section 3.1)",
    where=Where.EAGER,
)
def attention_in_tiles_of_48(runner: Runner) -> Undo:
    return _in_tiles(runner, 48)


def _as_set(attend: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A block's `attend`, counted as the backend that the engine was set to: a control is another
    way in which that backend could add up, not another backend, which would be an axis."""

    def counted(block: Any, *args: Any) -> torch.Tensor:
        from engine.attention.calls import add, taken  # noqa: PLC0415 - only where a rank runs

        before = taken()
        attended = attend(block, *args)
        taken()
        add(before)
        add({block.backend: 1})
        return attended

    return counted


@_as_set
def _written_out(
    block: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cache: LayerCache,
    meta: AttentionMetadata,
    window: int,
) -> torch.Tensor:
    """Attention by the specification's three operations."""
    from engine.attention import paged_attention  # noqa: PLC0415 - only where a rank runs

    attended: torch.Tensor = paged_attention(
        *(q, k, v, cache.keys, cache.values),
        *(meta.row_offsets, meta.context_starts, meta.block_tables, meta.slot_mapping),
        *(cache.block_size, block.scale, block.causal, window, "naive", block.batch_invariant),
    )
    return attended


def _in_tiles(runner: Runner, tile: int) -> Undo:
    import torch  # noqa: PLC0415 - only where a rank runs

    def attend(
        block: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cache: LayerCache,
        meta: AttentionMetadata,
        window: int,
    ) -> torch.Tensor:
        assert block.causal, "only causal checkpoints are planned with this"
        assert not window, "only checkpoints without windows are planned with this"
        kept = meta.slot_mapping >= 0
        cache.keys[meta.slot_mapping[kept]] = k[kept]
        cache.values[meta.slot_mapping[kept]] = v[kept]
        out = torch.zeros_like(q)
        offsets, size = meta.row_offsets.tolist(), cache.block_size
        for sequence, start in enumerate(meta.context_starts.tolist()):
            first, stop = offsets[sequence : sequence + 2]
            if first == stop:
                continue
            at = torch.arange(start + stop - first)
            slots = meta.block_tables[sequence][at // size] * size + at % size
            out[first:stop] = _one_sequence(
                q[first:stop], cache.keys[slots], cache.values[slots], block.scale, tile
            )
        return out.flatten(1)

    return on_block_parts(runner, attend=_as_set(attend))


def _one_sequence(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, tile: int
) -> torch.Tensor:
    """Online softmax (arXiv:2205.14135, algorithm 1): q [R, H, d] are the last of the N positions
    of k and v [N, H_kv, d] -> [R, H, d]."""
    import torch  # noqa: PLC0415 - only where a rank runs

    group = q.shape[1] // k.shape[1]
    k, v = (heads.repeat_interleave(group, dim=1) for heads in (k, v))
    rows, keys = len(q), len(k)
    position = torch.arange(keys - rows, keys)
    highest = q.new_full((q.shape[1], rows, 1), -torch.inf)
    total = torch.zeros_like(highest)
    mixed = q.new_zeros((q.shape[1], rows, q.shape[2]))
    for begin in range(0, keys, tile):
        part = slice(begin, begin + tile)
        scores = torch.einsum("rhd,nhd->hrn", q, k[part]) * scale
        seen = torch.arange(begin, min(begin + tile, keys)) <= position[:, None]
        scores = scores.masked_fill(~seen, -torch.inf)
        higher = torch.maximum(highest, scores.amax(-1, keepdim=True))
        weights, shrink = (scores - higher).exp(), (highest - higher).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        mixed = mixed * shrink + torch.einsum("hrn,nhd->hrd", weights, v[part])
        highest = higher
    return (mixed / total).transpose(0, 1)
