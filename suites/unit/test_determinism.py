"""Process preparation, what is attested, and the probe of batch invariance.

Passes wrongly if the probe measured nothing. Ruled out by suites/meta/test_suites_can_fail.py:
`the-probe-asks-nothing`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from engine import determinism
from engine.attention import op
from engine.determinism import (
    CPU_FLAGS,
    VECTOR_MATH,
    attest_flags,
    probe_batch_invariance,
    warm_vector_math,
)
from engine.errors import ConfigurationError
from engine.kernels import base
from engine.layers.activation import ACTIVATIONS
from engine.layers.rotary import rotary_table
from harness.checkpoints.catalogue import path_of

ROOT = Path(__file__).parents[2]
FRESH_PROCESSES = 60


def start(*arguments: str) -> subprocess.Popen[str]:
    """A fresh interpreter at the repository root, with none of `CPU_FLAGS` set."""
    environment = {k: v for k, v in os.environ.items() if k not in CPU_FLAGS}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def lines(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=250)
    assert process.returncode == 0, err
    return out.splitlines()


@pytest.fixture
def unmeasured() -> Iterator[None]:
    """The probe remembers no measurement, before or after; one thread, as engines have.

    On two threads MKL's strict mode does not reach a product of K=48 N=16 on an AMD EPYC: there
    the probe finds it, and a test would see that instead of what it planted.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    determinism._measure.cache_clear()
    yield
    determinism._measure.cache_clear()
    torch.set_num_threads(threads)


def test_fresh_processes_agree_on_the_rotary_table() -> None:
    two = [start("-m", "suites.unit.fresh_rotary", str(FRESH_PROCESSES // 2)) for _ in range(2)]
    digests = [line for process in two for line in lines(process)]
    assert len(digests) == FRESH_PROCESSES
    assert len(set(digests)) == 1
    assert len(digests[0]) == 64


class Calls(TorchDispatchMode):
    """Owns: the number of elements each operator was called on."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: dict[str, set[tuple[torch.dtype, int]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        name = func.overloadpacket.__name__
        self.elements.setdefault(name, set()).update((t.dtype, t.numel()) for t in tensors)
        return func(*args, **(kwargs or {}))


def test_warming_calls_every_function_on_one_element_in_both_precisions() -> None:
    with Calls() as calls:
        warm_vector_math()
    once = {(torch.float32, 1), (torch.float64, 1)}
    for name in (*VECTOR_MATH, "gelu", "silu", "pow"):
        assert calls.elements[name] == once, name


def test_the_layers_use_no_function_that_is_not_warmed() -> None:
    """Every unary operator of every activation and of the rotary table is on the list."""
    x = torch.randn(4, 8)
    with Calls() as calls:
        for function in ACTIVATIONS.values():
            function(x)
        rotary_table(torch.arange(4), x[0], torch.float32)
    arithmetic = {
        *("add", "mul", "div", "neg", "reciprocal", "relu", "cat", "_to_copy"),
        *("unsqueeze", "slice", "arange", "sub", "select"),
    }
    called = {name.removesuffix("_") for name in calls.elements}  # in place it is the same function
    assert called - arithmetic <= set(VECTOR_MATH)
    assert {"cos", "sin", "exp", "erf", "tanh"} <= called


PREPARED = """
import os, sys
from engine.determinism import attest_flags, prepare_process
assert "torch" not in sys.modules
prepare_process()
from engine.models import load_model
load_model(sys.argv[1], batch_invariant=True)
print(attest_flags()["MKL_CBWR"], os.environ["MKL_CBWR"], "torch._dynamo" in sys.modules)
"""
TOO_LATE = """
import os, torch
from engine.determinism import attest_flags, prepare_process, probe_batch_invariance
from engine.errors import ConfigurationError
prepare_process()
torch.ones(9, 9) @ torch.ones(9, 9)
assert "MKL_CBWR" not in os.environ
os.environ["MKL_CBWR"] = "AUTO,STRICT"
print(attest_flags()["MKL_CBWR"])
try:
    probe_batch_invariance("float32")
except ConfigurationError as error:
    print(error)
"""


def test_preparing_a_process_works_before_torch_and_only_before() -> None:
    prepared = start("-c", PREPARED, str(path_of("tiny-qwen3")))
    too_late = start("-c", TOO_LATE)
    # Read from MKL itself; and eager work has not imported the compiler, which takes seconds.
    assert lines(prepared) == ["AUTO,STRICT AUTO,STRICT False"]
    mode, refusal = lines(too_late)
    assert mode == "OFF"
    assert "got MKL_CBWR=OFF. Set MKL_CBWR=AUTO,STRICT in the environment before torch" in refusal


def test_what_is_attested_is_what_is_in_force() -> None:
    flags = attest_flags()
    assert all(isinstance(value, str) for value in flags.values())
    assert flags["MKL_CBWR"] == "AUTO,STRICT"
    assert flags["torch"] == torch.__version__
    assert flags["instruction_set"] == torch.backends.cpu.get_cpu_capability()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        assert attest_flags()["num_threads"] == str(before + 1)
    finally:
        torch.set_num_threads(before)


def test_the_probe_passes_here() -> None:
    probe_batch_invariance("float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"dtype='{dtype}'.*float32"):
        probe_batch_invariance(dtype)


@pytest.mark.parametrize("mode", ["OFF", "AUTO", "absent"])
def test_other_modes_of_mkl_are_refused(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(determinism, "mkl_reproducibility", lambda: mode)
    with pytest.raises(ConfigurationError, match=f"MKL_CBWR={mode}"):
        probe_batch_invariance("float32")


@pytest.mark.usefixtures("unmeasured")
def test_a_product_that_depends_on_the_number_of_rows_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dependent(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        out = F.linear(x, *args, **kwargs)
        return torch.nextafter(out, out + 1) if len(x) == 31 else out

    monkeypatch.setattr(base, "TORCH", replace(base.TORCH, linear=dependent))
    pattern = r"a product of K=48 N=16 in float32 gives other bits on 31 rows.*Turn batch_invariant"
    with pytest.raises(ConfigurationError, match=pattern):
        probe_batch_invariance("float32", [(48, 16)])


@pytest.mark.usefixtures("unmeasured")
def test_a_function_that_depends_on_where_values_lie_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ACTIVATIONS, "silu", F.silu)
    with pytest.raises(ConfigurationError, match="silu in float32"):
        probe_batch_invariance("float32")


@pytest.mark.usefixtures("unmeasured")
def test_attention_that_depends_on_the_number_of_keys_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(op, "KEY_TILE", 1)
    with pytest.raises(ConfigurationError, match="attention in float32 from position"):
        probe_batch_invariance("float32")
