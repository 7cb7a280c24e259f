"""From a model folder to a model, or to one stage of it."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.attention import backend, batch_backend
from engine.config import DTYPES
from engine.determinism import (
    probe_batch_invariance,
    require_fixed_order,
    warm_vector_math,
)
from engine.errors import ConfigurationError
from engine.kernels import require_triton
from engine.models.base import AttentionOptions, Model
from engine.models.config import read_model_config
from engine.models.headed import head_tensors
from engine.models.registry import model_class
from engine.models.split import check_divisible
from engine.weights import Checkpoint


def check_arithmetic(
    *, dtype: str, attention: str, kernels: str, batch_invariant: bool, device: str
) -> None:
    """Refuse what no model can be computed with here, before any weight is read.

    Raises:
        ConfigurationError: an unknown name, a backend without code for this device or dtype, or
            `batch_invariant` with one whose order of sums is not fixed.
    """
    if dtype not in DTYPES:
        raise ConfigurationError(f"dtype={dtype!r}: expected one of {DTYPES}")
    for what, name in (("attention", attention), ("kernels", kernels)):
        if name == "triton":
            require_triton(f"{what}='triton'", device, dtype)
    if batch_backend(attention) is None:
        backend(attention)
    if batch_invariant:
        require_fixed_order(device, dtype, attention=attention, kernels=kernels)


def load_model(
    path: str | Path,
    *,
    dtype: str = "float32",
    layers: range | None = None,
    attention: str = "sdpa",
    kernels: str = "torch",
    batch_invariant: bool = False,
    tensor_rank: int = 0,
    tensor_ranks: int = 1,
    device: str = "cpu",
) -> Model:
    """Load the model in a folder, or the stage that holds `layers` (a non-empty run of them).

    With `tensor_ranks` only the part of each layer that `tensor_rank` holds is read.

    A stage reads its own layers, plus the embedding if it is the first and the final norm if it is
    the last; names and shapes are checked for the whole checkpoint either way.

    Raises:
        CheckpointError: files missing, unreadable, or not the model that config.json describes.
        ConfigurationError: the arguments do not fit the model, or each other; or this machine
            cannot keep the promise of `batch_invariant`.
    """
    config = read_model_config(path)
    check_arithmetic(
        dtype=dtype,
        attention=attention,
        kernels=kernels,
        batch_invariant=batch_invariant,
        device=device,
    )
    layers = range(config.num_layers) if layers is None else layers
    if layers.step != 1 or not 0 <= layers.start < layers.stop <= config.num_layers:
        raise ConfigurationError(
            f"layers={layers!r}: expected a non-empty run of 0..{config.num_layers - 1} for {path}"
        )
    warm_vector_math()
    family = model_class(config.architecture)
    check_divisible(config, family.block_class, tensor_ranks)
    if not 0 <= tensor_rank < tensor_ranks:
        raise ConfigurationError(
            f"tensor_rank={tensor_rank}: expected 0 to {tensor_ranks - 1}, of {tensor_ranks} ranks"
        )
    model: Model = family(
        config,
        Checkpoint(
            Path(path),
            claimed=head_tensors(Path(path)),
            tensor_rank=tensor_rank,
            tensor_ranks=tensor_ranks,
        ),
        layers=layers,
        dtype=getattr(torch, dtype),
        options=AttentionOptions(
            backend=attention, kernels=kernels, batch_invariant=batch_invariant
        ),
    ).to(device)
    if batch_invariant:
        weights = (p for p in model.blocks.parameters() if p.dim() == 2)
        probe_batch_invariance(
            dtype,
            [(weight.shape[1], weight.shape[0]) for weight in weights],
            device=device,
            head_dim=config.head_dim,
        )
    return model.eval()
