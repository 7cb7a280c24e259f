"""Late interaction (ColBERT, arXiv:2004.12832): each query token's best match, summed."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import torch
import triton
import triton.language as tl

TILE_QUERY: Final = 16
TILE_TOKENS: Final = 32
TILE_DIM: Final = 32


@triton.jit
def _max_sim(
    query: tl.tensor,
    tokens: tl.tensor,
    offsets: tl.tensor,
    out: tl.tensor,
    query_rows: tl.tensor,
    num_tokens: tl.tensor,
    query_stride: tl.tensor,
    token_stride: tl.tensor,
    dim: tl.constexpr,
    tile_query: tl.constexpr,
    tile_tokens: tl.constexpr,
    tile_dim: tl.constexpr,
    precision: tl.constexpr,
) -> None:
    document = tl.program_id(0).to(tl.int64)
    first = tl.minimum(tl.maximum(tl.load(offsets + document), 0), num_tokens)
    stop = tl.minimum(tl.maximum(tl.load(offsets + document + 1), 0), num_tokens)
    score = tl.zeros([], tl.float32)
    for query_start in range(0, query_rows, tile_query):
        row = query_start + tl.arange(0, tile_query)
        best = tl.full([tile_query], float("-inf"), tl.float32)
        for start in range(first, stop, tile_tokens):
            token = start + tl.arange(0, tile_tokens)
            similar = tl.zeros([tile_query, tile_tokens], tl.float32)
            for lane_start in range(0, dim, tile_dim):
                lane = lane_start + tl.arange(0, tile_dim)
                q = tl.load(
                    query + row[:, None] * query_stride + lane[None, :],
                    mask=(row < query_rows)[:, None] & (lane < dim)[None, :],
                    other=0.0,
                )
                t = tl.load(
                    tokens + token.to(tl.int64)[None, :] * token_stride + lane[:, None],
                    mask=(token < stop)[None, :] & (lane < dim)[:, None],
                    other=0.0,
                )
                similar = tl.dot(q, t, similar, input_precision=precision)
            similar = tl.where((token < stop)[None, :], similar, float("-inf"))
            best = tl.maximum(best, tl.max(similar, 1))
        score += tl.sum(tl.where((row < query_rows) & (stop > first), best, 0.0), 0)
    tl.store(out + document, score)


def max_sim(query: torch.Tensor, tokens: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """sum over query rows of the largest product with a row of the document, float32 [S].

    Shapes: query [Q, D], tokens [N, D] of S documents one after another, offsets [S + 1] int64;
    all of one dtype. A document of no tokens scores 0. Tiles are fixed, so a document's score does
    not depend on the others.
    """
    documents = offsets.shape[0] - 1
    out = torch.empty(documents, dtype=torch.float32, device=query.device)
    query, tokens = query.contiguous(), tokens.contiguous()
    if documents:
        _max_sim[(documents,)](
            query,
            tokens,
            offsets,
            out,
            query.shape[0],
            tokens.shape[0],
            query.stride(0),
            tokens.stride(0),
            dim=query.shape[1],
            tile_query=TILE_QUERY,
            tile_tokens=TILE_TOKENS,
            tile_dim=TILE_DIM,
            precision="ieee",
        )
    return out


def max_sim_reference(
    query: torch.Tensor, tokens: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """`max_sim` in PyTorch, one document at a time; in float64 if the rows are."""
    bounds = offsets.clamp(0, tokens.shape[0]).tolist()
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = query.new_zeros(len(bounds) - 1, dtype=wide)
    for document, (first, stop) in enumerate(pairwise(bounds)):
        if first < stop:
            similar = query.to(wide) @ tokens[first:stop].to(wide).T
            scores[document] = similar.amax(dim=1).sum()
    return scores
