"""Which architectures the engine has, and the class that runs each."""

from __future__ import annotations

from typing import Final

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
