"""Products, norms and rotary angles: against PyTorch, and bit by bit against fewer rows.

Passes wrongly if the bound was so wide that a term of a sum could be left out. Ruled out by
`test_a_term_left_out_is_beyond_every_bound`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import kernels_called
from engine.kernels.rms_norm import add_rms_norm, add_rms_norm_reference
from engine.layers.norm import rms_norm
from engine.layers.rotary import inverse_frequencies, rotary_table, rotate
from suites.kernels.errors import within
from suites.kernels.where import DEVICE, DTYPES, EXAMPLES, bound, draw, error

TRITON = kernels_called("triton")
FULL = DEVICE == "cuda"
ROWS = st.integers(1, 300 if FULL else 70)
WIDTHS = st.sampled_from([16, 33, 64, 192, *([576, 1024, 3072] * FULL)])
DTYPE = st.sampled_from(DTYPES)


@settings(max_examples=EXAMPLES)
@given(rows=ROWS, inner=WIDTHS, outer=WIDTHS, dtype=DTYPE, biased=st.booleans(), data=st.data())
def test_products(
    *, rows: int, inner: int, outer: int, dtype: torch.dtype, biased: bool, data: st.DataObject
) -> None:
    x = draw(rows, inner, dtype=dtype, seed=rows)
    weight = draw(outer, inner, dtype=dtype, seed=1) / inner**0.5
    bias = draw(outer, dtype=dtype, seed=2) if biased else None
    found = TRITON.linear(x, weight, bias)
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    # A sum of n terms errs like its root (Higham and Mary 2019); the bound is that of 1,024.
    assert within("linear", dtype, found, exact, bound(dtype) * max(1.0, (inner / 1024) ** 0.5))
    first = data.draw(st.integers(0, rows - 1))
    part = TRITON.linear(x[first:].clone(), weight, bias)
    assert torch.equal(part, found[first:])


def test_a_term_left_out_is_beyond_every_bound() -> None:
    """One of 192 terms of a product, of a mean of squares, and one row's angles for the next's."""
    for dtype in DTYPES:
        x, weight = (draw(9, 192, dtype=dtype, seed=s) for s in (5, 6))
        short = weight.clone()
        short[:, -1] = 0
        found = TRITON.linear(x, short, None)
        assert error(found, F.linear(x.double(), weight.double())) > bound(dtype)
        cut = x.clone()
        # The term that weighs most: one of small weight is within what bfloat16 rounds.
        cut[:, weight[0].abs().argmax()] = 0
        found = TRITON.rms_norm(cut, weight[0], 1e-6)
        assert error(found, rms_norm(x.double(), weight[0].double(), 1e-6)) > bound(dtype)
        heads = x.view(9, 12, 16)
        frequencies = inverse_frequencies(16, 1e4).to(DEVICE)
        cos, sin = rotary_table(torch.arange(10, device=DEVICE), frequencies, dtype)
        found = TRITON.rotate(heads, cos[1:], sin[1:])
        exact = rotate(heads.double(), cos[:-1].double(), sin[:-1].double())
        assert error(found, exact) > bound(dtype)


@settings(max_examples=EXAMPLES)
@given(rows=ROWS, width=WIDTHS, dtype=DTYPE, data=st.data())
def test_norms_and_the_residual(
    *, rows: int, width: int, dtype: torch.dtype, data: st.DataObject
) -> None:
    x, residual = (draw(rows, width, dtype=dtype, seed=s) for s in (rows, rows + 1))
    weight = draw(width, dtype=dtype, seed=3)
    found = TRITON.rms_norm(x, weight, 1e-6)
    exact = rms_norm(x.double(), weight.double(), 1e-6)
    assert within("rms_norm", dtype, found, exact, bound(dtype))
    normed, summed = add_rms_norm(x, residual, weight, 1e-6)
    expected, expected_sum = add_rms_norm_reference(x, residual, weight, 1e-6)
    assert torch.equal(summed, expected_sum)
    assert within("add_rms_norm", dtype, normed, expected, bound(dtype))
    first = data.draw(st.integers(0, rows - 1))
    assert torch.equal(TRITON.rms_norm(x[first:].clone(), weight, 1e-6), found[first:])


@settings(max_examples=EXAMPLES)
@given(rows=ROWS, heads=st.integers(1, 5), half=st.sampled_from([7, 8, 16, 64]), dtype=DTYPE)
def test_heads_of_a_packed_product_are_normalised_and_turned(
    *, rows: int, heads: int, half: int, dtype: torch.dtype
) -> None:
    dim = 2 * half
    packed = draw(rows, heads + 3, dim, dtype=dtype, seed=rows)[:, 1 : heads + 1]
    weight = draw(dim, dtype=dtype, seed=4)
    normed = TRITON.rms_norm(packed, weight, 1e-6)
    exact = rms_norm(packed.double(), weight.double(), 1e-6)
    assert within("rms_norm", dtype, normed, exact, bound(dtype))
    frequencies = inverse_frequencies(dim, 1e4).to(DEVICE)
    cos, sin = rotary_table(torch.arange(rows, device=DEVICE), frequencies, dtype)
    turned = TRITON.rotate(packed, cos, sin)
    exact = rotate(packed.double(), cos.double(), sin.double())
    assert within("rotate", dtype, turned, exact, bound(dtype))
