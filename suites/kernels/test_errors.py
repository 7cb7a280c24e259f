"""The table of errors tells what a kernel was off by.

Passes wrongly if only one of two comparisons of a kernel was told. Ruled out by
`test_a_row_is_the_worst_of_its_comparisons`.
"""

from __future__ import annotations

import torch

from suites.kernels.errors import COLUMNS, Comparison, max_ulp, rows, take, within
from suites.kernels.where import DTYPES


def noted(found: torch.Tensor, exact: torch.Tensor, bound: float) -> tuple[bool, Comparison]:
    """One comparison, without leaving it in this run's table."""
    others = take()
    ok = within("mine", found.dtype, found, exact, bound)
    (note,) = take()
    assert not others
    return ok, Comparison(**note)


def test_neighbouring_numbers_are_one_unit_apart() -> None:
    for dtype in DTYPES:
        exact = torch.tensor([1.0, -3.0, 700.0], dtype=dtype)
        for value in torch.chunk(exact, 3):
            # The next pattern of bits is the next number away from zero.
            pattern = value.view(torch.int32 if dtype == torch.float32 else torch.int16)
            assert max_ulp((pattern + 1).view(dtype), value) == 1.0


def test_what_is_left_of_a_cancellation_counts_no_units() -> None:
    """1e-9 beside 1, off by itself: nothing of the result, 2^23 units of the element."""
    exact = torch.tensor([1.0, 1e-9], dtype=torch.float64)
    ok, note = noted(torch.tensor([1.0, 0.0]), exact, 1e-6)
    assert ok
    assert note.max_ulp == 0.0
    assert note.max_abs == 1e-9


def test_beyond_the_bound_is_noted_too() -> None:
    ok, note = noted(torch.tensor([3.0, 4.5]), torch.tensor([3.0, 4.0], dtype=torch.float64), 0.05)
    assert not ok
    assert (note.max_abs, note.relative_l2, note.bound) == (0.5, 0.1, 0.05)
    assert (note.dtype, note.shape) == ("float32", (2,))


def test_a_row_is_the_worst_of_its_comparisons() -> None:
    def one(shape: tuple[int, ...], *, worst: float, bound: float) -> Comparison:
        return Comparison(
            kernel="mine",
            dtype="float32",
            shape=shape,
            max_abs=worst,
            max_ulp=2 * worst,
            relative_l2=worst / 8,
            bound=bound,
        )

    near, far = one((2, 3), worst=8.0, bound=4.0), one((1, 5), worst=4.0, bound=1.0)
    for notes in ([near, far], [far, near]):
        (row,) = rows(notes)
        assert dict(zip(COLUMNS, row, strict=True)) == {
            "kernel": "mine",
            "dtype": "float32",
            "n": 2,
            "smallest": "1x5",
            "largest": "2x3",
            "max abs": 8.0,
            "max ulp": 16.0,
            "rel. L2": 1.0,
            "bound": 1.0,
            "share": 0.5,
        }
