"""What our engine can do on this machine, told without running a model."""

from __future__ import annotations

import subprocess
import sysconfig
from dataclasses import dataclass

import torch

from engine.determinism import mkl_reproducibility, probe_batch_invariance
from engine.errors import ConfigurationError
from engine.execution.compiled import require_compiler

_PROBE = "#include <Python.h>\n#include <cmath>\n"
"""What inductor's generated sources include at the least; parsing them takes a second."""
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """A `..._problem` is empty when there is none, else the engine's own message."""

    compiler: str
    """Command of the C++ compiler that compiled mode would call; empty when there is none."""
    compiler_problem: str
    mkl_mode: str
    """As MKL itself reports it: `AUTO,STRICT`, `OFF`, `absent`..."""
    batch_invariance_problem: str
    device: str
    """Name of the GPU, or `cpu`."""


def engine_facts() -> EngineFacts:
    """Ask the engine and its libraries; compiles nothing and loads no checkpoint."""
    compiler, compiler_problem = _compiler()
    try:
        probe_batch_invariance("float32")
        batch_invariance_problem = ""
    except ConfigurationError as error:
        batch_invariance_problem = str(error)
    return EngineFacts(
        compiler=compiler,
        compiler_problem=compiler_problem,
        mkl_mode=mkl_reproducibility(),
        batch_invariance_problem=batch_invariance_problem,
        device=torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    )


def _compiler() -> tuple[str, str]:
    """(command, problem). One that is found but cannot compile counts as a problem too."""
    try:
        require_compiler("cpu")
    except ConfigurationError as error:
        return "", str(error)
    from torch._inductor.cpp_builder import get_cpp_compiler  # noqa: PLC0415 - heavy
    from torch._inductor.exc import InvalidCxxCompiler  # noqa: PLC0415

    try:
        command = str(get_cpp_compiler())
    except InvalidCxxCompiler as error:
        return "", f"{error}. Install g++ or clang, set CXX, or use mode='eager'"
    include = sysconfig.get_path("include")
    try:
        done = subprocess.run(
            [command, "-x", "c++", "-fsyntax-only", f"-I{include}", "-"],
            input=_PROBE,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return command, f"{command} cannot be run: {error}"
    if done.returncode == 0:
        return command, ""
    said = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
    return command, (
        f"{command} cannot compile what torch generates: {said.strip()}. Install Python's headers "
        f"(looked in {include}) and a complete C++ toolchain, or set CXX to another compiler"
    )
