"""MaxSim, the score of late interaction (ColBERT, arXiv:2004.12832, section 3.3)."""

from __future__ import annotations

import torch


def maxsim(query: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
    """Sum over the query's tokens of the largest dot product with a document's token; a scalar.

    `query` [n, d], `document` [m, d], both with at least one row. In float32 at least: sums of n
    half-precision maxima would tie.
    """
    wide = torch.promote_types(query.dtype, torch.float32)
    return (query.to(wide) @ document.to(wide).T).amax(1).sum()
