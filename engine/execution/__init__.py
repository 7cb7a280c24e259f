"""How a block is carried out: the table of execution modes."""

from __future__ import annotations

from engine.execution.base import Execution, Frame
from engine.execution.compiled import CompiledExecution, Compiler
from engine.execution.eager import EagerExecution

__all__ = ["CompiledExecution", "Compiler", "EagerExecution", "Execution", "Frame"]
