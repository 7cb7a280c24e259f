"""What a compiler may make of the same block: other vectors, other instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from harness.controls.base import Where, control
from harness.faults.plant import Undo, replace_method
from harness.faults.seams import is_compiled, nothing

if TYPE_CHECKING:  # the table of controls is read without loading torch
    from engine.execution.compiled import Compiler
    from engine.runner import Runner

_SUBSTITUTES: WeakKeyDictionary[Compiler, dict[str, Compiler]] = WeakKeyDictionary()
"""An engine's compiler -> by control, the one that stands in for it wherever it is shared."""


def _compiled_with(runner: Runner, name: str, **options: Any) -> Undo:
    """The block compiled again, with these options of torch's inductor."""
    if not is_compiled(runner):
        return nothing
    from engine.execution.compiled import Compiler  # noqa: PLC0415 - only where a rank runs
    from engine.execution.regions import ONE_RANK  # noqa: PLC0415

    execution: Any = runner.execution
    known = _SUBSTITUTES.setdefault(execution.compiler, {})
    if name not in known:
        known[name] = Compiler(options)
        known[name].prime(runner.model, ONE_RANK)
    return replace_method(execution, "compiler", known[name])


@control(
    name="compiled-without-vectors",
    difference="compiled code handles one number at a time, so its sums have another order",
    allowed="the width of a vector follows the processor",
    where=Where.COMPILED,
)
def compiled_without_vectors(runner: Runner) -> Undo:
    return _compiled_with(runner, "without vectors", **{"cpp.simdlen": 1})


@control(
    name="compiled-with-fused-multiply-adds",
    difference="compiled code rounds a multiplication and the addition after it once, not twice",
    allowed="C lets a compiler contract expressions, and GPUs do so by default",
    where=Where.COMPILED,
)
def compiled_with_fused_multiply_adds(runner: Runner) -> Undo:
    options = {"cpp.enable_floating_point_contract_flag": "fast"}
    return _compiled_with(runner, "with fused multiply-adds", **options)
