"""Kernels in Triton, each beside its reference in PyTorch, and the table that chooses between them.

Nothing here imports Triton before it is chosen.
"""

from __future__ import annotations

from engine.kernels.availability import require_triton
from engine.kernels.base import TORCH, Kernels, kernels_called

__all__ = ["TORCH", "Kernels", "kernels_called", "require_triton"]
