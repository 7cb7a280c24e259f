"""What the compiler is told of Triton's operators.

Passes wrongly if the check was told of the operators' shapes by the stand-ins themselves. Ruled out
by `test_a_stand_in_of_another_shape_is_seen`.
"""

from __future__ import annotations

import pytest
import torch

from engine.kernels import kernels_called

CHECKED = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")


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
        test_utils=CHECKED,
    )


def test_a_stand_in_of_another_shape_is_seen() -> None:
    with torch.library._scoped_library("pooling_parity_suite", "FRAGMENT") as library:
        library.define("halved(Tensor x) -> Tensor")
        library.impl("halved", lambda x: x / 2, "CompositeExplicitAutograd")
        torch.library.register_fake(
            "pooling_parity_suite::halved", lambda x: x.new_empty(x.shape[0]), lib=library
        )
        halved = torch.ops.pooling_parity_suite.halved.default
        told = torch.library.opcheck(
            halved, (torch.ones(9, 4),), test_utils=CHECKED, raise_exception=False
        )
    assert told["test_schema"] == "SUCCESS"
    assert told["test_faketensor"] != "SUCCESS"
