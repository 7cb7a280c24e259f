"""From a model folder to a model, or to one stage of it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import torch

from engine.attention import backend
from engine.config import DTYPES
from engine.determinism import probe_batch_invariance, warm_vector_math
from engine.errors import ConfigurationError
from engine.models.base import AttentionOptions, Model
from engine.models.config import read_model_config
from engine.models.registry import ARCHITECTURES
from engine.weights import Checkpoint


def load_model(
    path: str | Path,
    *,
    dtype: str = "float32",
    layers: range | None = None,
    attention: str = "sdpa",
    batch_invariant: bool = False,
) -> Model:
    """Load the model in a folder, or the stage that holds `layers` (a non-empty run of them).

    A stage reads its own layers, plus the embedding if it is the first and the final norm if it is
    the last; names and shapes are checked for the whole checkpoint either way.

    Raises:
        CheckpointError: files missing, unreadable, or not the model that config.json describes.
        ConfigurationError: the arguments do not fit the model, or each other; or this machine
            cannot keep the promise of `batch_invariant`.
    """
    config = read_model_config(path)
    if dtype not in DTYPES:
        raise ConfigurationError(f"dtype={dtype!r}: expected one of {DTYPES}")
    backend(attention)
    if batch_invariant and attention == "naive":
        raise ConfigurationError(
            "attention='naive' with batch_invariant=True: its reduction order depends on the "
            "number of keys. Choose attention='sdpa'"
        )
    layers = range(config.num_layers) if layers is None else layers
    if layers.step != 1 or not 0 <= layers.start < layers.stop <= config.num_layers:
        raise ConfigurationError(
            f"layers={layers!r}: expected a non-empty run of 0..{config.num_layers - 1} for {path}"
        )
    warm_vector_math()
    module, name = ARCHITECTURES[config.architecture].split(":")
    model_class = getattr(import_module(module), name)
    model: Model = model_class(
        config,
        Checkpoint(Path(path)),
        layers=layers,
        dtype=getattr(torch, dtype),
        options=AttentionOptions(backend=attention, batch_invariant=batch_invariant),
    )
    if batch_invariant:
        weights = (p for p in model.blocks.parameters() if p.dim() == 2)
        probe_batch_invariance(dtype, [(weight.shape[1], weight.shape[0]) for weight in weights])
    return model.eval()
