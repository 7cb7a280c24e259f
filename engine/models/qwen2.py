"""Qwen2 (arXiv:2407.10671): biases on q, k and v, and windows in the upper layers if asked for."""

from __future__ import annotations

from dataclasses import replace

from engine.models.config import LayerKind, ModelConfig
from engine.models.decoder import DecoderModel, no_windows
from engine.models.fields import Fields


class Qwen2Model(DecoderModel):
    """The decoder with biases on its query, key and value projections and none on the output's."""

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        return replace(super().read_config(fields), qkv_bias=True, output_bias=False)

    @classmethod
    def layer_kinds(cls, fields: Fields, count: int) -> tuple[LayerKind, ...]:
        return upper_windows(fields, count)


def upper_windows(fields: Fields, count: int) -> tuple[LayerKind, ...]:
    """Of `count` layers those from `max_window_layers` on have a window, or those `layer_types`
    names; none while `use_sliding_window` is off."""
    if not fields.flag("use_sliding_window", default=False):
        return no_windows(fields, count)
    first, window = fields.size("max_window_layers", count), fields.size("sliding_window")
    sliding = fields.sliding_layers(count, lambda layer: layer >= first)
    return tuple(LayerKind(window=window if narrow else 0) for narrow in sliding)
