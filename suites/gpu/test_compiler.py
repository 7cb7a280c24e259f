"""What the compiler is told of Triton's operators."""

from __future__ import annotations

import pytest
import torch

from engine.kernels import kernels_called


@pytest.mark.parametrize("name", ["linear", "rms_norm", "rotate"])
def test_the_stand_ins_have_the_operators_shapes(name: str) -> None:
    kernels_called("triton")
    x = torch.randn(9, 4, 16, device="cuda")
    arguments = {
        "linear": (x[:, 0], torch.randn(5, 16, device="cuda"), None),
        "rms_norm": (x, x[0, 0], 1e-6),
        "rotate": (x, x[:, 0], x[:, 1]),
    }[name]
    torch.library.opcheck(
        getattr(torch.ops.pooling_parity, name).default,
        arguments,
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"),
    )
