"""Llama (arXiv:2302.13971), SmolLM2 among it."""

from __future__ import annotations

from engine.models.decoder import DecoderModel


class LlamaModel(DecoderModel):
    """The plain decoder."""
