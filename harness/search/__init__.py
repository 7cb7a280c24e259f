"""Search: making a failing case small, within a budget and without changing what it shows."""

from __future__ import annotations

from harness.search.budget import Budget
from harness.search.passes import reduce_case
from harness.search.reducer import Reducer, size_of

__all__ = ["Budget", "Reducer", "reduce_case", "size_of"]
