"""A pooling inference engine: embeddings, rerankers and token-level outputs.

Importing this package loads no torch; the names below are resolved when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.engine import Engine, RunResult
    from engine.request import PoolingOutput, PoolingParams, PoolingRequest, Task
    from engine.tokenization import Tokenizer

_HOMES = {
    "Engine": "engine.engine",
    "EngineConfig": "engine.config",
    "PoolingOutput": "engine.request",
    "PoolingParams": "engine.request",
    "PoolingRequest": "engine.request",
    "RunResult": "engine.engine",
    "Task": "engine.request",
    "Tokenizer": "engine.tokenization",
}

__all__ = [
    "Engine",
    "EngineConfig",
    "PoolingOutput",
    "PoolingParams",
    "PoolingRequest",
    "RunResult",
    "Task",
    "Tokenizer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}; it has {__all__}")
    return getattr(import_module(_HOMES[name]), name)
