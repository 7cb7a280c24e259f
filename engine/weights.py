"""Reads safetensors checkpoints, whole or sharded, and believes nothing about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from engine.errors import CheckpointError
from engine.jsonfile import read_json_object

SINGLE_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"

Shape = tuple[int, ...]


def frozen(tensor: torch.Tensor) -> nn.Parameter:
    """A parameter that no gradient reaches."""
    return nn.Parameter(tensor, requires_grad=False)


class Checkpoint:
    """The tensors of a model folder, by name. Holds no file open and no tensor in memory.

    Raises CheckpointError, naming the file, when the folder holds no readable checkpoint.
    """

    def __init__(
        self,
        folder: Path,
        *,
        single: str = SINGLE_FILE,
        claimed: Collection[str] = (),
        tensor_rank: int = 0,
        tensor_ranks: int = 1,
    ) -> None:
        """`tensor_rank` of `tensor_ranks`: for whom it is read; see `engine.models.split`.

        `single`: the file's name when there is one only. `claimed`: patterns of names that a head
        reads for itself, so that they are not unexpected in the model's own file.
        """
        self.folder = folder
        self._claimed = tuple(claimed)
        self.tensor_rank, self.tensor_ranks = tensor_rank, tensor_ranks
        self._files: dict[str, Path] = {}
        self._shapes: dict[str, Shape] = {}
        for file, promised in _files(folder, single).items():
            with _opened(file) as content:
                names = set(content.keys())
                if promised is not None and names != promised:
                    raise CheckpointError(
                        f"{file} does not hold what {INDEX_FILE} says: missing "
                        f"{sorted(promised - names)}, unexpected {sorted(names - promised)}. "
                        "Download the checkpoint again"
                    )
                for name in names:
                    self._files[name] = file
                    self._shapes[name] = tuple(content.get_slice(name).get_shape())

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def shape(self, name: str) -> Shape:
        """Of a tensor that is there."""
        return self._shapes[name]

    def prefix(self, name: str, candidates: Sequence[str]) -> str:
        """The candidate under which `name` is found; the first if there is none (see `check`)."""
        return next((p for p in candidates if p + name in self._files), candidates[0])

    def check(
        self,
        expected: Mapping[str, Shape],
        *,
        optional: Mapping[str, Shape],
        ignorable: Sequence[str],
    ) -> None:
        """Compare names and shapes with what a model needs.

        `optional` tensors may be absent; names that match an `ignorable` pattern are not looked at.

        Raises:
            CheckpointError: a tensor is missing, unexpected or of another shape; lists them all.
        """
        known = {**expected, **optional}
        missing = sorted(expected.keys() - self._files.keys())
        unexpected = sorted(
            name
            for name in self._files.keys() - known.keys()
            if not any(re.fullmatch(pattern, name) for pattern in (*ignorable, *self._claimed))
        )
        if missing or unexpected:
            raise CheckpointError(
                f"{self.folder}: missing tensors {missing}, unexpected tensors {unexpected}. The "
                "weights and config.json describe different models: check `architectures` and "
                "`num_hidden_layers`, or save the model again"
            )
        wrong = [
            f"{name} in {self._files[name].name} is {list(self._shapes[name])}, not {list(shape)}"
            for name, shape in sorted(known.items())
            if name in self._files and self._shapes[name] != shape
        ]
        if wrong:
            raise CheckpointError(
                f"{self.folder}: tensors of another shape than config.json implies: "
                f"{'; '.join(wrong)}. Check its sizes, or save the model again"
            )

    def read(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """A copy of one tensor, rounded to `dtype`.

        Raises:
            CheckpointError: it is not floating-point, or holds NaN or infinity before or after
                rounding.
        """
        return self.read_pieces(name, dtype, dim=0, pieces=1, kept=range(1))

    def read_pieces(
        self, name: str, dtype: torch.dtype, *, dim: int, pieces: int, kept: Sequence[int]
    ) -> torch.Tensor:
        """A copy of some of a tensor: cut along `dim` into equal `pieces`, those `kept`, joined.

        Nothing else of it is read. `dim` is 0 or 1.

        Raises:
            CheckpointError: see `read`.
        """
        file = self._files[name]
        with _opened(file) as content:
            if pieces == 1:
                stored: torch.Tensor = content.get_tensor(name)
            else:
                length, before = self._shapes[name][dim] // pieces, (slice(None),) * dim
                cut = content.get_slice(name)
                spans = [slice(piece * length, (piece + 1) * length) for piece in kept]
                stored = torch.cat([cut[(*before, span)] for span in spans], dim=dim)
            if not stored.is_floating_point():
                raise CheckpointError(
                    f"{name} in {file} is {stored.dtype}: expected floating-point weights. Convert "
                    "quantised checkpoints first"
                )
            tensor = stored.to(dtype, copy=True)  # the file's pages must not back a model's weights
        bad = int((~torch.isfinite(tensor)).sum())
        if bad:
            raise CheckpointError(
                f"{name} in {file} holds {bad} values of {tensor.numel()} that are NaN or infinite "
                f"as {dtype}. Download the file again, or choose a dtype of wider range"
            )
        return tensor


def _files(folder: Path, single: str) -> dict[Path, set[str] | None]:
    """Each safetensors file of a folder -> the names its index promises (None: no index)."""
    if (folder / single).is_file():
        return {folder / single: None}
    if not (folder / INDEX_FILE).is_file():
        other = sorted(p.name for p in folder.glob("*.bin")) if folder.is_dir() else []
        raise CheckpointError(
            f"expected {single} or {INDEX_FILE} in {folder}, got "
            f"{other or 'neither'}. Convert other formats to safetensors first"
        )
    weight_map = read_json_object(folder / INDEX_FILE).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(
            f"expected a 'weight_map' in {folder / INDEX_FILE}, got {weight_map!r}"
        )
    shards: dict[Path, set[str] | None] = {}
    for shard in sorted(set(weight_map.values())):
        if Path(shard).name != shard:
            raise CheckpointError(
                f"{folder / INDEX_FILE} names shard {shard!r}: expected a file of the same folder"
            )
        shards[folder / shard] = {name for name, file in weight_map.items() if file == shard}
    return shards


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safe_open(file, framework="pt") as content:
            yield content
    except FileNotFoundError:
        raise CheckpointError(
            f"{file} is named by {INDEX_FILE} but absent. Download the checkpoint again"
        ) from None
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"cannot read {file} as safetensors: {error}. It is truncated or damaged: download it "
            "again"
        ) from error
