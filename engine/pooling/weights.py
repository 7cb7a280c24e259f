"""The tensors of heads: in the model's own file, or in one of their own beside it."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.errors import CheckpointError
from engine.models.base import Model
from engine.weights import SINGLE_FILE, Checkpoint, Shape


class HeadWeights:
    """Reads head tensors from a model folder, in float32 (float64 for a float64 model).

    Heads are small and their errors reach the answer undamped, so they are not rounded to half
    precision with the model.
    """

    def __init__(self, folder: Path, model: Model) -> None:
        self._folder, self._model = folder, model
        self._dtype = torch.promote_types(model.dtype, torch.float32)
        self._device = next(model.parameters()).device
        self._open: dict[tuple[str, str], Checkpoint] = {}

    def read(
        self, name: str, shape: Shape, *, subfolder: str = "", file: str = SINGLE_FILE
    ) -> torch.Tensor:
        """One tensor on the model's device. Raises CheckpointError: absent, or another shape."""
        key = (subfolder, file)
        if key not in self._open:
            self._open[key] = Checkpoint(self._folder / subfolder, single=file)
        checkpoint = self._open[key]
        if name not in checkpoint or checkpoint.shape(name) != shape:
            found = list(checkpoint.shape(name)) if name in checkpoint else "no such tensor"
            raise CheckpointError(
                f"head tensor {name} of {self._folder / subfolder}: expected {list(shape)}, got "
                f"{found}. Save the model with its head again"
            )
        return checkpoint.read(name, self._dtype).to(self._device)

    def lm_head_rows(self, ids: list[int]) -> torch.Tensor:
        """Rows of the LM head, [len(ids), D] in the model's dtype."""
        return self._model.lm_head_rows(ids).to(self._device)
