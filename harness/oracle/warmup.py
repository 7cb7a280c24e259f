"""Vector-math functions are called once, on one element, before any result counts.

The first multi-threaded call of cos, sin or exp in a fresh process can be silently wrong (a
dispatch race in the vector-math library, https://github.com/pytorch/pytorch/issues/188792). One
element runs on one thread and settles the dispatch.
"""

from __future__ import annotations

from functools import lru_cache

import torch

_FUNCTIONS = (
    torch.cos,
    torch.sin,
    torch.exp,
    torch.log,
    torch.erf,
    torch.tanh,
    torch.sigmoid,
    torch.sqrt,
    torch.rsqrt,
)


@lru_cache(maxsize=1)
def settle_vector_math() -> int:
    """Call each function once per dtype; once per process. Returns how many calls were made."""
    calls = 0
    for dtype in (torch.float32, torch.float64):
        one = torch.ones(1, dtype=dtype)
        for function in _FUNCTIONS:
            function(one)
            calls += 1
        torch.pow(one, 2.5)
        torch.softmax(one, dim=0)
        torch.nn.functional.gelu(one)
        torch.nn.functional.silu(one)
        calls += 4
    return calls
