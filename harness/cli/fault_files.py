"""Faults that a user's own Python file declares."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.errors import UsageError
from harness.faults import faults_in
from harness.faults.base import Fault


def faults_from(file: Path) -> tuple[Fault, ...]:
    """The faults that a Python file declares. UsageError says what is wrong with the file.

    Its folder is put on the path, and on that of every worker started from here, so that the
    plug-ins can be imported by name.
    """
    if not file.is_file():
        raise UsageError(f"no file {file}: expected a Python file that declares faults")
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file: expected a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    found = faults_in(module)
    if not found:
        raise UsageError(
            f"{file} declares no fault: expected functions under @planted(...), see docs/faults.md"
        )
    strange = sorted({f.checkpoint for f in found} - set(CHECKPOINTS))
    if strange:
        raise UsageError(
            f"{file}: unknown checkpoint {', '.join(strange)}; valid: {', '.join(CHECKPOINTS)}"
        )
    return found
