"""Models: what config.json says, the block contract, one small file per family, the loader."""

from __future__ import annotations

from engine.models.base import AttentionMetadata, AttentionOptions, Block, LayerCache, Model
from engine.models.config import LayerKind, ModelConfig, read_model_config
from engine.models.loader import load_model

__all__ = [
    "AttentionMetadata",
    "AttentionOptions",
    "Block",
    "LayerCache",
    "LayerKind",
    "Model",
    "ModelConfig",
    "load_model",
    "read_model_config",
]
