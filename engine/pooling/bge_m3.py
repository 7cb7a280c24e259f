"""BGE-M3's two small files beside the model (arXiv:2402.03216): token weights, and ColBERT rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.errors import CheckpointError
from engine.pooling.heads.layers import DenseSpec
from engine.weights import Checkpoint

SPARSE_FILE: Final = "sparse_linear.safetensors"
COLBERT_FILE: Final = "colbert_linear.safetensors"


def sparse_linear(folder: Path, hidden: int) -> DenseSpec | None:
    """relu(w . h + b), one value a token; None when the folder has no such file."""
    found = _linear(folder, SPARSE_FILE, hidden, activation="relu")
    if found is not None and found.outputs != 1:
        raise CheckpointError(
            f"{folder / SPARSE_FILE}: weight of {found.outputs} rows: expected one row"
        )
    return found


def colbert_linear(folder: Path, hidden: int) -> DenseSpec | None:
    """The projection of token rows; None when the folder has no such file."""
    return _linear(folder, COLBERT_FILE, hidden, activation="identity")


def _linear(folder: Path, file: str, hidden: int, *, activation: str) -> DenseSpec | None:
    if not (folder / file).is_file():
        pickled = Path(file).with_suffix(".pt").name
        if (folder / pickled).exists():
            raise CheckpointError(
                f"{folder / pickled} is a pickle, which can run code when it is read: expected "
                f'{file}. Convert it once, where you trust it: python -c "import torch; from '
                f"safetensors.torch import save_file; save_file(torch.load('{pickled}', "
                f"weights_only=True), '{file}')\""
            )
        return None
    checkpoint = Checkpoint(folder, single=file)
    if "weight" not in checkpoint or len(checkpoint.shape("weight")) != 2:
        raise CheckpointError(f"{folder / file}: expected tensors weight [outputs, {hidden}], bias")
    return DenseSpec(
        weight="weight",
        bias="bias" if "bias" in checkpoint else None,
        inputs=hidden,
        outputs=checkpoint.shape("weight")[0],
        activation=activation,
        file=file,
    )
