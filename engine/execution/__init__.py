"""How a stage is carried out: the table of execution modes."""

from __future__ import annotations

from engine.execution.base import Execution, Frame, Layer
from engine.execution.compiled import CompiledExecution, Compiler
from engine.execution.eager import EagerExecution
from engine.execution.graph import GraphExecution

__all__ = [
    "CompiledExecution",
    "Compiler",
    "EagerExecution",
    "Execution",
    "Frame",
    "GraphExecution",
    "Layer",
]
