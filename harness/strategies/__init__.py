"""Strategies: Hypothesis cases that aim at boundaries, and drawing them by seed."""

from __future__ import annotations

from harness.strategies.cases import CaseSpace, cases
from harness.strategies.draw import SeedError, draw_cases, draw_each, draw_one
from harness.strategies.lengths import Edges, boundaries_of
from harness.strategies.texts import text_pairs, texts

__all__ = [
    "CaseSpace",
    "Edges",
    "SeedError",
    "boundaries_of",
    "cases",
    "draw_cases",
    "draw_each",
    "draw_one",
    "text_pairs",
    "texts",
]
