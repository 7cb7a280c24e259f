"""Matrix products whose terms are added in another order, or with other company."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controls.base import Where, control
from harness.faults.plant import Undo
from harness.faults.seams import is_chunked, nothing, on_block_parts

if TYPE_CHECKING:  # the table of controls is read without loading torch
    import torch

    from engine.runner import Runner

    Product = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]

ROWS = 32
"""Rows that the bucket of `chunk-products-on-32-rows` has."""


def _multiplied_by(runner: Runner, product: Product) -> Undo:
    """Every product of a block by another function of (x [n, K], weight [N, K], bias [N])."""
    from engine.kernels import TORCH  # noqa: PLC0415 - only where a rank runs

    def linear(
        x: torch.Tensor, /, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        return product(x, weight, bias)

    return on_block_parts(runner, kernels=replace(TORCH, linear=linear))


def _in_two_halves(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    from torch.nn.functional import linear  # noqa: PLC0415 - only where a rank runs

    half = x.shape[-1] // 2
    return linear(x[..., :half], weight[:, :half]) + linear(x[..., half:], weight[:, half:], bias)


@control(
    name="products-in-two-halves",
    difference="every product is the sum of two over half the terms each",
    allowed="split-K kernels and two tensor ranks add like this (arXiv:1909.08053, section 3)",
    where=Where.EAGER,
)
def products_in_two_halves(runner: Runner) -> Undo:
    return _multiplied_by(runner, _in_two_halves)


@control(
    name="products-in-two-halves-of-an-encoder",
    difference="as products-in-two-halves, with biases",
    allowed="split-K kernels and two tensor ranks add like this (arXiv:1909.08053, section 3)",
    where=Where.EAGER,
    checkpoint="tiny-bert",
)
def products_in_two_halves_of_an_encoder(runner: Runner) -> Undo:
    return _multiplied_by(runner, _in_two_halves)


@control(
    name="chunks-add-last-terms-first",
    difference="chunked cells add the terms of every product from the last to the first",
    allowed="no order of a sum is part of a model; kernels for few rows have one of their own",
    where=Where.CHUNKED,
)
def chunks_add_last_terms_first(runner: Runner) -> Undo:
    from torch.nn.functional import linear  # noqa: PLC0415 - only where a rank runs

    def backwards(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return linear(x.flip(-1), weight.flip(-1), bias)

    return _multiplied_by(runner, backwards) if is_chunked(runner) else nothing


@control(
    name="products-accumulate-in-float64",
    difference="products are accumulated in float64 and rounded once",
    allowed="a wider accumulator is what half precision has as a rule; it is nearer the truth",
    where=Where.EAGER,
)
def products_accumulate_in_float64(runner: Runner) -> Undo:
    from torch.nn.functional import linear  # noqa: PLC0415 - only where a rank runs

    def wide(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        wider = None if bias is None else bias.double()
        return linear(x.double(), weight.double(), wider).to(x.dtype)

    return _multiplied_by(runner, wide)


@control(
    name="chunk-products-on-32-rows",
    difference="chunked steps are padded to a bucket of 32 rows, so products take other kernels",
    allowed="engines pad steps to the sizes that their graphs were captured for",
    where=Where.CHUNKED,
    sure=False,  # bits change on an AMD EPYC with AVX2, and not on a Xeon with AVX-512
)
def chunk_products_on_32_rows(runner: Runner) -> Undo:
    from torch.nn.functional import linear, pad  # noqa: PLC0415 - only where a rank runs

    def padded(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        rows = len(x)
        return linear(pad(x, (0, 0, 0, -rows % ROWS)), weight, bias)[:rows]

    return _multiplied_by(runner, padded) if is_chunked(runner) else nothing
