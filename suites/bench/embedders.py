"""Who embeds texts in the CPU benchmark: our engine, two libraries, and the products alone.

Each is called with texts and returns embeddings [n, D] of norm 1, tokenization included. Both
libraries are given their texts by length, so that a batch holds little padding:
sentence-transformers sorts them itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from engine.config import EngineConfig, ExecutionConfig, SchedulerConfig
from engine.engine import Engine
from engine.placement import Place
from engine.plan import StepPlan
from engine.request import PoolingParams, PoolingRequest, Task
from engine.resources import Resources
from engine.tokenization import TokenizedPrompt, Tokenizer

MAX_LENGTH = 512
"""Tokens; every text fits."""
BUDGET, MAX_SEQS = 8192, 32
"""Tokens and prompts of our engine's steps: what `parity serve` starts with."""
ONE_RANK = Place(rank=0, num_stages=1, tensor_ranks=1)


class Ours:
    """Owns: an engine and its tokenizer, and the plan of the last call."""

    def __init__(self, folder: Path, resources: Resources, *, mode: str = "eager") -> None:
        self._engine = Engine(configuration(folder, mode=mode), resources=resources)
        self._tokenizer = Tokenizer(folder)
        self.plan: tuple[StepPlan, ...] = ()

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        return self.embed([self._tokenizer.encode(text) for text in texts])

    def embed(self, prompts: Sequence[TokenizedPrompt]) -> torch.Tensor:
        """The same from token ids."""
        result = self._engine.run(
            [
                PoolingRequest(
                    request_id=str(index),
                    token_ids=prompt.token_ids,
                    type_ids=prompt.type_ids,
                    task=Task.EMBED,
                    params=PoolingParams(normalize=True),
                )
                for index, prompt in enumerate(prompts)
            ]
        )
        self.plan = result.plan
        return torch.stack([result.outputs[str(i)].values for i in range(len(prompts))])

    def close(self) -> None:
        self._engine.close()


def configuration(folder: Path, *, mode: str = "eager") -> EngineConfig:
    """Our engine as it is benchmarked: the server's defaults, and torch's own number of threads."""
    return EngineConfig(
        model=folder,
        max_model_len=MAX_LENGTH,
        scheduler=SchedulerConfig(max_num_batched_tokens=BUDGET, max_num_seqs=MAX_SEQS),
        execution=ExecutionConfig(mode=mode, num_threads=torch.get_num_threads()),
    )


class SentenceTransformers:
    """`SentenceTransformer.encode` with one batch size. Borrows the model."""

    def __init__(self, model: SentenceTransformer, batch: int) -> None:
        self._model, self._batch = model, batch

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        return self._model.encode(
            list(texts),
            batch_size=self._batch,
            convert_to_tensor=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )


def sentence_transformer(folder: Path) -> SentenceTransformer:
    """The library's model of a folder, for texts as long as ours."""
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.max_seq_length = MAX_LENGTH
    return model


class HuggingFace:
    """The plain transformers model on padded batches, pooled as the checkpoint is. Borrows it."""

    def __init__(self, folder: Path, model: torch.nn.Module, pooling: str, batch: int) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="right")
        self._model, self._pooling, self._batch = model, pooling, batch

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True)
        found: dict[int, torch.Tensor] = {}
        with torch.inference_mode():
            for first in range(0, len(order), self._batch):
                batch = order[first : first + self._batch]
                inputs = self._tokenizer(
                    [texts[index] for index in batch], padding=True, return_tensors="pt"
                )
                states = self._model(**inputs).last_hidden_state
                mask = inputs["attention_mask"]
                found |= dict(zip(batch, self._pooled(states, mask), strict=True))
        return torch.stack([found[index] for index in range(len(texts))])

    def _pooled(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self._pooling == "MEAN":
            rows = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        else:
            rows = states[torch.arange(len(states)), mask.sum(1) - 1]
        return F.normalize(rows, dim=-1)


def hugging_face(folder: Path) -> torch.nn.Module:
    """The library's model; it keeps no keys and values."""
    model: torch.nn.Module = AutoModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa", local_files_only=True
    ).eval()
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model


class Products:
    """The layers' matrix products and nothing else, on the rows of our engine's last steps."""

    def __init__(self, ours: Ours, resources: Resources) -> None:
        self._ours, self._resources = ours, resources
        self._inputs: dict[tuple[int, int], torch.Tensor] = {}

    def __call__(self, texts: Sequence[str]) -> None:
        del texts
        with torch.inference_mode():
            for step in self._ours.plan:
                for weight in self._weights():
                    F.linear(self._input(step.num_tokens, weight.shape[1]), weight)

    def _weights(self) -> Iterator[torch.Tensor]:
        for block in self._resources.stage(ONE_RANK).blocks:
            yield from block.products()

    def _input(self, rows: int, width: int) -> torch.Tensor:
        if (rows, width) not in self._inputs:
            self._inputs[rows, width] = torch.randn(rows, width)
        return self._inputs[rows, width]
