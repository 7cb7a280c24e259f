"""References on disk: what the oracle said of a prompt, so that it is asked only once.

An entry is one safetensors file whose name hashes everything the answer depends on (model files,
library versions, dtype, question, token ids). It carries the hash of its own payload; an entry that
does not match, or cannot be read, is computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from harness.checkpoints.cache import cache_root, sha256_of, weights_sha256
from harness.oracle.oracle import Dtype, Oracle, Pooling

_REVISION = 1
"""Raise it when `Oracle` starts to answer differently, so that old entries are not read."""


@dataclass(slots=True, kw_only=True)
class ResultStore:
    """Tensors by key, on disk.

    Owns: every file under `root`. `hits` and `misses` count what this object was asked.
    """

    root: Path = field(default_factory=lambda: cache_root() / "oracle")
    hits: int = 0
    misses: int = 0

    def get_or_compute(
        self, key: str, compute: Callable[[], list[torch.Tensor]]
    ) -> list[torch.Tensor]:
        """The tensors stored under `key`, computed and stored first if absent or damaged."""
        name = hashlib.sha256(key.encode()).hexdigest()
        file = self.root / name[:2] / f"{name}.safetensors"
        stored = _read(file)
        if stored is not None:
            self.hits += 1
            return stored
        self.misses += 1
        tensors = compute()
        _write(file, tensors)
        return tensors


class CachedOracle:
    """An `Oracle` that remembers; the model is loaded at the first question it has no answer to.

    Owns: the oracle it loads. Shares: `store`, with any number of others.
    """

    def __init__(
        self, path: Path, *, dtype: Dtype = "float64", store: ResultStore | None = None
    ) -> None:
        self._path, self._dtype = path, dtype
        self._store = store if store is not None else ResultStore()
        self._model_key = _model_key(path, dtype)
        self._loaded: Oracle | None = None

    @property
    def store(self) -> ResultStore:
        return self._store

    def hidden(
        self, token_ids: Sequence[int], type_ids: Sequence[int] | None = None
    ) -> torch.Tensor:
        """As `Oracle.hidden`."""
        return self._one("hidden", token_ids, type_ids, lambda o: o.hidden(token_ids, type_ids))

    def layer_hidden(
        self, token_ids: Sequence[int], type_ids: Sequence[int] | None = None
    ) -> list[torch.Tensor]:
        """As `Oracle.layer_hidden`."""
        return self._ask(
            "layers", token_ids, type_ids, lambda o: o.layer_hidden(token_ids, type_ids)
        )

    def embed(
        self,
        token_ids: Sequence[int],
        pooling: Pooling,
        *,
        normalize: bool,
        type_ids: Sequence[int] | None = None,
    ) -> torch.Tensor:
        """As `Oracle.embed`."""
        return self._one(
            f"embed {pooling} normalize={normalize}",
            token_ids,
            type_ids,
            lambda o: o.embed(token_ids, pooling, normalize=normalize, type_ids=type_ids),
        )

    def token_embed(
        self,
        token_ids: Sequence[int],
        *,
        normalize: bool,
        type_ids: Sequence[int] | None = None,
    ) -> torch.Tensor:
        """As `Oracle.token_embed`."""
        return self._one(
            f"token_embed normalize={normalize}",
            token_ids,
            type_ids,
            lambda o: o.token_embed(token_ids, normalize=normalize, type_ids=type_ids),
        )

    def yes_no_logit(self, token_ids: Sequence[int], yes_id: int, no_id: int) -> float:
        """As `Oracle.yes_no_logit`."""
        answer = self._one(
            f"yes_no_logit {yes_id} {no_id}",
            token_ids,
            None,
            lambda o: torch.tensor(o.yes_no_logit(token_ids, yes_id, no_id), dtype=torch.float64),
        )
        return float(answer)

    def token_yes_no_logits(
        self, token_ids: Sequence[int], yes_id: int, no_id: int
    ) -> torch.Tensor:
        """As `Oracle.token_yes_no_logits`."""
        return self._one(
            f"token_yes_no_logits {yes_id} {no_id}",
            token_ids,
            None,
            lambda o: o.token_yes_no_logits(token_ids, yes_id, no_id),
        )

    def _one(
        self,
        question: str,
        token_ids: Sequence[int],
        type_ids: Sequence[int] | None,
        ask: Callable[[Oracle], torch.Tensor],
    ) -> torch.Tensor:
        (answer,) = self._ask(question, token_ids, type_ids, lambda oracle: [ask(oracle)])
        return answer

    def _ask(
        self,
        question: str,
        token_ids: Sequence[int],
        type_ids: Sequence[int] | None,
        ask: Callable[[Oracle], list[torch.Tensor]],
    ) -> list[torch.Tensor]:
        types = None if type_ids is None else list(type_ids)
        key = json.dumps([self._model_key, question, list(token_ids), types])
        return self._store.get_or_compute(key, lambda: ask(self._oracle()))

    def _oracle(self) -> Oracle:
        if self._loaded is None:
            self._loaded = Oracle(self._path, dtype=self._dtype)
        return self._loaded


def _model_key(path: Path, dtype: Dtype) -> str:
    """Everything about the model and this process that an answer depends on."""
    parts = {
        "revision": str(_REVISION),
        "weights": weights_sha256(path),
        "config": sha256_of(path / "config.json"),  # rope theta, epsilon: not in the weights
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "dtype": dtype,
    }
    if dtype == "float32":  # its last bits depend on the kernels chosen; float64's do not matter
        parts["instructions"] = torch.backends.cpu.get_cpu_capability()
        parts["threads"] = str(torch.get_num_threads())
    return json.dumps(parts, sort_keys=True)


def _read(file: Path) -> list[torch.Tensor] | None:
    """The tensors of an intact entry, in order, else None."""
    try:
        with safe_open(file, framework="pt") as entry:
            promised = (entry.metadata() or {}).get("payload")
            tensors = [entry.get_tensor(str(place)) for place in range(len(entry.keys()))]
    except (FileNotFoundError, SafetensorError):
        return None
    return tensors if promised == _payload_hash(tensors) else None


def _write(file: Path, tensors: list[torch.Tensor]) -> None:
    """Publish an entry at once: a reader sees all of it or none."""
    named = {str(place): tensor.contiguous() for place, tensor in enumerate(tensors)}
    content = save(named, metadata={"payload": _payload_hash(tensors)})
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=file.parent, suffix=".draft")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _payload_hash(tensors: list[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
