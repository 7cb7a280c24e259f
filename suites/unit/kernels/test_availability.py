"""Triton's kernels are refused where they cannot run, with what to do about it.

Passes wrongly if nothing were ever refused. Ruled out by suites/meta/test_suites_can_fail.py:
`triton-is-never-refused`.
"""

from __future__ import annotations

import importlib.util

import pytest
import torch

from engine.config import ExecutionConfig
from engine.errors import ConfigurationError
from engine.kernels import TORCH, kernels_called, require_triton
from engine.models import load_model
from harness.checkpoints.catalogue import path_of


@pytest.mark.parametrize("choice", ["attention", "kernels"])
def test_a_cpu_without_the_interpreter(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ConfigurationError, match=f"{choice}='triton' on device='cpu'"):
        load_model(path_of("tiny-qwen3"), **{choice: "triton"})


def test_the_interpreter_has_no_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    require_triton("kernels='triton'", "cpu", "float32")
    with pytest.raises(ConfigurationError, match="dtype='bfloat16' on cpu"):
        require_triton("kernels='triton'", "cpu", "bfloat16")
    with pytest.raises(ConfigurationError, match="the interpreter runs on the CPU"):
        require_triton("kernels='triton'", "cuda", "float32")


def test_float64_and_old_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    with pytest.raises(ConfigurationError, match="dtype='float64' on cuda"):
        require_triton("attention='triton'", "cuda", "float64")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device: "an old one")
    with pytest.raises(ConfigurationError, match=r"capability \(8, 0\), an old one has \(7, 5\)"):
        require_triton("attention='triton'", "cuda", "float32")


def test_a_platform_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ConfigurationError, match="the package triton is not installed"):
        require_triton("kernels='triton'", "cuda", "float32")


def test_the_table_of_kernels() -> None:
    assert kernels_called("torch") is TORCH
    with pytest.raises(ConfigurationError, match="kernels='cuda': expected 'torch' or 'triton'"):
        kernels_called("cuda")
    with pytest.raises(ConfigurationError, match=r"kernels='cuda' is not valid"):
        ExecutionConfig(kernels="cuda")


def test_batch_invariance_says_which_kernels_it_needs() -> None:
    with pytest.raises(ConfigurationError, match="Choose attention='sdpa' and kernels='torch'"):
        load_model(path_of("tiny-qwen3"), attention="naive", batch_invariant=True)
