"""A checkpoint of tiny-variance weights: it answers almost the same whatever it is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from safetensors.numpy import save_file

from harness.checkpoints import decoders
from harness.checkpoints.architectures import HIDDEN
from harness.checkpoints.layout import write_json, write_sentence_transformers
from harness.checkpoints.tensors import draw

SPREAD = 1e-4
"""Of every weight, around one for embeddings and norms and around zero for projections."""
POSITIONS = 512


def write(folder: Path) -> Path:
    """Write the model into `folder` and return it."""
    architecture = decoders.qwen3(max_positions=POSITIONS)
    tensors = {
        name: replace(spec, scale=SPREAD, mean=1.0 if "proj" not in name else 0.0)
        for name, spec in architecture.tensors.items()
    }
    write_json(folder / "config.json", architecture.config)
    save_file(draw(tensors, seed=0), folder / "model.safetensors", metadata={"format": "pt"})
    write_sentence_transformers(folder, pooling="LAST", hidden_size=HIDDEN, max_length=POSITIONS)
    return folder
