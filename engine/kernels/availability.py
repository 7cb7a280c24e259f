"""Whether Triton's kernels can run here, found out before anything depends on them."""

from __future__ import annotations

import importlib.util
import os
from typing import Final

import torch

from engine.errors import ConfigurationError

MIN_CAPABILITY: Final = (8, 0)
"""Compute capability from which on `tl.dot` takes bfloat16."""


def interpreted() -> bool:
    """Whether Triton's kernels of this process run in its interpreter, on the CPU."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes")


def require_triton(what: str, device: str, dtype: str) -> None:
    """Refuse a choice of Triton's kernels that cannot run here.

    Args:
        what: the choice as it was made, such as "attention='triton'".

    Raises:
        ConfigurationError: no Triton, a device that it has no code for, or a dtype that the
            kernels have none for.
    """
    if importlib.util.find_spec("triton") is None:
        raise ConfigurationError(
            f"{what}: the package triton is not installed, and there is none for this platform "
            "unless it is Linux. Install it, or choose a backend of PyTorch's"
        )
    kind = torch.device(device).type
    if kind == "cpu" and not interpreted():
        raise ConfigurationError(
            f"{what} on device='cpu': Triton compiles for GPUs only. Use device='cuda', choose "
            "another backend, or set TRITON_INTERPRET=1 before the process starts to run the "
            "kernels in Triton's interpreter, which is slow and meant for tests"
        )
    if kind == "cuda":
        if interpreted():
            raise ConfigurationError(
                f"{what} on device={device!r} under TRITON_INTERPRET=1: the interpreter runs on "
                "the CPU. Unset the variable, or use device='cpu'"
            )
        found = torch.cuda.get_device_capability(device)
        if found < MIN_CAPABILITY:
            raise ConfigurationError(
                f"{what}: the kernels need compute capability {MIN_CAPABILITY}, "
                f"{torch.cuda.get_device_name(device)} has {found}. Choose another backend"
            )
    dtypes = ("float32", "float16") if kind == "cpu" else ("float32", "float16", "bfloat16")
    if dtype not in dtypes:
        raise ConfigurationError(
            f"{what} with dtype={dtype!r} on {kind}: expected one of {dtypes}. Choose one of "
            "these, or another backend"
        )
