"""What makes two runs of the same arithmetic give the same bits, and proof that it holds here."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from engine.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

CPU_FLAGS: Final = {"MKL_CBWR": "AUTO,STRICT"}
"""Environment that must be set before torch loads. STRICT makes MKL's products independent of the
number of rows and threads (Intel oneMKL developer guide, "Conditional Numerical Reproducibility")."""


def prepare_process() -> None:
    """Set `CPU_FLAGS` for this process and its children, keeping values the caller chose.

    Call before torch is imported: MKL reads its environment once. Too late, it changes nothing and
    `attest_flags` will say so.
    """
    if "torch" in sys.modules:
        return
    for name, value in CPU_FLAGS.items():
        os.environ.setdefault(name, value)


def warm_vector_math() -> None:
    """Call each vector-math function once on one element.

    The first call in a process picks an implementation; when several threads make it at once, some
    of them can compute with the wrong one, silently (pytorch issue 188792). One element is one
    thread. Every process that computes calls this first; it costs about a millisecond.
    """
    import torch  # noqa: PLC0415 - `prepare_process` has to run before torch loads
    import torch.nn.functional as F  # noqa: PLC0415

    functions = (
        torch.cos, torch.sin, torch.exp, torch.expm1, torch.log, torch.log1p, torch.tanh,
        torch.erf, torch.sigmoid, torch.rsqrt, torch.sqrt, torch.reciprocal, F.gelu, F.silu,
        F.softplus,
    )  # fmt: skip
    with torch.inference_mode():
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            one = torch.full((1, 1), 0.5, dtype=dtype)
            for function in functions:
                function(one)
            torch.pow(2.0, one)
            torch.pow(one, 2.0)
            torch.softmax(one, dim=-1)
            torch.log_softmax(one, dim=-1)
            F.gelu(one, approximate="tanh")
            F.layer_norm(one, (1,))
            F.scaled_dot_product_attention(one[None], one[None], one[None])
