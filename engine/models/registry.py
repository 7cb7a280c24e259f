"""Which architectures the engine has, and the class that runs each."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

DECODERS: Final = {
    "LlamaForCausalLM": "engine.models.llama:LlamaModel",
    "LlamaModel": "engine.models.llama:LlamaModel",
    "Qwen3ForCausalLM": "engine.models.qwen3:Qwen3Model",
    "Qwen3Model": "engine.models.qwen3:Qwen3Model",
}
ENCODERS: Final = {
    "BertModel": "engine.models.bert:BertModel",
}
ARCHITECTURES: Final = {**DECODERS, **ENCODERS}
"""`architectures[0]` of config.json -> module:class, imported when a model is loaded."""


def model_class(architecture: str) -> Any:
    """The subclass of `Model` that runs an architecture of the table."""
    module, name = ARCHITECTURES[architecture].split(":")
    return getattr(import_module(module), name)
