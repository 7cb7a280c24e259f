"""Building blocks that every model family shares: products, norms, activations, rotary angles."""

from __future__ import annotations
