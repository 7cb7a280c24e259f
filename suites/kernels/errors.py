"""What each kernel was found to err by, gathered from every comparison of a run.

A test holds a kernel's result to its bound through `within`, which notes how far it was. pytest's
workers hand their notes to the one that prints (`suites/kernels/conftest.py`).

Owns: the notes of the test that is running.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Final

import torch

from suites.figures import Cell
from suites.kernels.where import error

COLUMNS: Final = (
    "kernel",
    "dtype",
    "n",
    "smallest",
    "largest",
    "max abs",
    "max ulp",
    "rel. L2",
    "bound",
    "share",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One result, of inputs of `dtype`, beside the exact one. Errors are computed in float64."""

    kernel: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    max_ulp: float
    relative_l2: float
    bound: float


_notes: list[Comparison] = []


def take() -> list[dict[str, Any]]:
    """The notes since the last call, in plain types that a worker can send; they are forgotten."""
    notes = [asdict(note) for note in _notes]
    _notes.clear()
    return notes


def within(
    kernel: str, dtype: torch.dtype, found: torch.Tensor, exact: torch.Tensor, bound: float
) -> bool:
    """Whether the relative L2 error is at most the bound. Notes it either way.

    Both of one shape; `dtype` is that of the kernel's inputs, and found has the one that it writes.
    """
    relative = error(found, exact)
    _notes.append(
        Comparison(
            kernel=kernel,
            dtype=str(dtype).removeprefix("torch."),
            shape=tuple(found.shape),
            max_abs=float((found.double() - exact.double()).abs().max()) if found.numel() else 0.0,
            max_ulp=max_ulp(found, exact),
            relative_l2=relative,
            bound=bound,
        )
    )
    return relative <= bound


def max_ulp(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Largest distance in units in the last place of the exact element, in found's dtype.

    Of elements at least as large as the result's root mean square: of a smaller one, which is what
    is left of larger terms, a unit in the last place says how much they cancel.
    """
    exact = exact.double()
    large = (exact.abs() >= exact.square().mean().sqrt()) & (exact != 0)
    if not bool(large.any()):
        return 0.0
    exact, apart = exact[large], (found.double()[large] - exact[large]).abs()
    unit = torch.finfo(found.dtype).eps * torch.exp2(torch.floor(torch.log2(exact.abs())))
    return float((apart / unit).max())


def rows(notes: Iterable[Comparison]) -> list[tuple[Cell, ...]]:
    """One of `COLUMNS` for each kernel and dtype: the worst of its comparisons.

    The shapes are those of the results with fewest and most elements. Of several bounds it is the
    tightest; "share" takes each comparison's own.
    """
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for note in notes:
        groups.setdefault((note.kernel, note.dtype), []).append(note)
    return [
        (
            *name,
            len(group),
            _shape(min(group, key=lambda note: prod(note.shape))),
            _shape(max(group, key=lambda note: prod(note.shape))),
            max(note.max_abs for note in group),
            max(note.max_ulp for note in group),
            max(note.relative_l2 for note in group),
            min(note.bound for note in group),
            max(note.relative_l2 / note.bound if note.bound else 0.0 for note in group),
        )
        for name, group in sorted(groups.items())
    ]


def _shape(note: Comparison) -> str:
    return "x".join(map(str, note.shape))
