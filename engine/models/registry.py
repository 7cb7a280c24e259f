"""Which architectures the engine has, and the class that runs each."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_LLAMA, _QWEN2, _QWEN3, _MISTRAL, _GEMMA3, _BERT, _ROBERTA, _MODERNBERT, _DISTILBERT = (
    "engine.models.llama:LlamaModel",
    "engine.models.qwen2:Qwen2Model",
    "engine.models.qwen3:Qwen3Model",
    "engine.models.mistral:MistralModel",
    "engine.models.gemma3:Gemma3Model",
    "engine.models.bert:BertModel",
    "engine.models.roberta:RobertaModel",
    "engine.models.modernbert:ModernBertModel",
    "engine.models.distilbert:DistilBertModel",
)
DECODERS: Final = {
    "LlamaForCausalLM": _LLAMA,
    "LlamaModel": _LLAMA,
    "Qwen2ForCausalLM": _QWEN2,
    "Qwen2Model": _QWEN2,
    "Qwen3ForCausalLM": _QWEN3,
    "Qwen3Model": _QWEN3,
    "MistralForCausalLM": _MISTRAL,
    "MistralModel": _MISTRAL,
    "Gemma3ForCausalLM": _GEMMA3,
    "Gemma3TextModel": _GEMMA3,
}
ENCODERS: Final = {
    "BertModel": _BERT,
    "BertForMaskedLM": _BERT,
    "RobertaModel": _ROBERTA,
    "RobertaForMaskedLM": _ROBERTA,
    "XLMRobertaModel": _ROBERTA,
    "XLMRobertaForMaskedLM": _ROBERTA,
    "ModernBertModel": _MODERNBERT,
    "ModernBertForMaskedLM": _MODERNBERT,
    "DistilBertModel": _DISTILBERT,
    "DistilBertForMaskedLM": _DISTILBERT,
}
ARCHITECTURES: Final = {**DECODERS, **ENCODERS}
"""`architectures[0]` of config.json -> module:class, imported when it is asked for."""


def model_class(architecture: str) -> Any:
    """The subclass of `Model` that runs an architecture of the table."""
    module, name = ARCHITECTURES[architecture].split(":")
    return getattr(import_module(module), name)
