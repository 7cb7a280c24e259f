"""The specification: attention written out, in whatever dtype it is given (float64 included)."""

from __future__ import annotations

import torch


def attend_rows(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    mask: torch.Tensor | None,
    scale: float,
    causal: bool = False,
) -> torch.Tensor:
    """See `AttendRows`."""
    group = q.shape[1] // k.shape[1]
    k, v = (heads.repeat_interleave(group, dim=1) for heads in (k, v))
    scores = torch.einsum("rhd,nhd->hrn", q, k) * scale
    if causal:
        mask = torch.ones(len(q), len(k), dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("hrn,nhd->rhd", scores.softmax(dim=-1), v)
