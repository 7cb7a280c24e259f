"""Mistral (arXiv:2310.06825): the plain decoder, whose layers all have one window or none."""

from __future__ import annotations

from engine.models.config import LayerKind
from engine.models.decoder import DecoderModel, no_windows
from engine.models.fields import SLIDING, Fields


class MistralModel(DecoderModel):
    """The decoder with `sliding_window` in every layer; null: without."""

    @classmethod
    def layer_kinds(cls, fields: Fields, count: int) -> tuple[LayerKind, ...]:
        if fields.values.get("sliding_window") is None:
            return no_windows(fields, count)
        fields.refuse_unless("layer_types", accepted=([SLIDING] * count,))
        return (LayerKind(window=fields.size("sliding_window")),) * count
