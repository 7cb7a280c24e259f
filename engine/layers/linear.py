"""Matrix products whose number of rows may be small."""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F

MIN_ROWS: Final = 8
"""Fewest rows of a product whose rows must not depend on their company.

float32 products under MKL's strict reproducible mode take another kernel below 4 rows (measured on
AVX2, torch 2.13); 8 leaves a margin, and `engine.determinism.probe_batch_invariance` checks it.
"""


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *, min_rows: int
) -> torch.Tensor:
    """x W^T + b, computed on at least `min_rows` rows; the rows added are zero and dropped again.

    Shapes: x [n, K], weight [N, K], bias [N] -> [n, N].
    """
    rows = x.shape[0]
    if rows >= min_rows:
        return F.linear(x, weight, bias)
    return F.linear(F.pad(x, (0, 0, 0, min_rows - rows)), weight, bias)[:rows]
