"""sentence-transformers as a system under test: its own modules, on its own padded batches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import sentence_transformers
import torch
import transformers
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers.utils import logging as transformers_logging

from harness.case import Case
from harness.judge.output import Output
from harness.oracle.warmup import settle_vector_math
from harness.systems.account import Account
from harness.systems.base import Assignment, Encoded, SystemFailed, SystemUnavailable
from harness.systems.plain import PlainSystem

_NO_SWITCH = "sentence-transformers encodes whole prompts, one batch after the other, in eager mode"


def sbert(assignment: Assignment) -> SentenceTransformers:
    """Factory. No options of its own; float32 only, as the library loads a model by default."""
    if assignment.options:
        raise SystemUnavailable(f"sbert has no options, got {sorted(assignment.options)}")
    if assignment.dtype != "float32":
        raise SystemUnavailable(f"dtype={assignment.dtype!r}: sbert runs float32 here")
    return SentenceTransformers(assignment)


class SentenceTransformers(PlainSystem):
    """Owns: one loaded `SentenceTransformer`.

    A case of texts goes through `encode`, as a user calls it. A prompt of token ids cannot, so the
    library's modules are called on the padded ids, as `encode` itself does.
    """

    why_not: Mapping[str, str] = dict.fromkeys(("compile", "chunk", "async", "pp"), _NO_SWITCH)

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        settle_vector_math()
        transformers_logging.disable_progress_bar()
        self._loaded: SentenceTransformer | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        return ("embed", "token_embed")

    def about(self) -> Mapping[str, str]:
        return {
            "sentence-transformers": sentence_transformers.__version__,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "MKL_CBWR": os.environ.get("MKL_CBWR", ""),
        }

    @property
    def _model(self) -> Any:  # its modules are looked up by name
        if self._loaded is None:
            self._loaded = SentenceTransformer(
                str(self.assignment.folder), device="cpu", local_files_only=True
            )
            self._loaded.max_seq_length = self.assignment.max_model_len
        return self._loaded

    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: Account,
    ) -> Sequence[Output]:
        del cell
        seen: list[list[tuple[int, ...]]] = []
        first = next(iter(self._model.children()))

        def note(_: object, arguments: tuple[dict[str, torch.Tensor], ...]) -> None:
            ids, mask = arguments[0]["input_ids"], arguments[0]["attention_mask"].bool()
            seen.append([tuple(row[keep].tolist()) for row, keep in zip(ids, mask, strict=True)])

        watching = first.register_forward_pre_hook(note)
        try:
            found = self._run(case, prompts)
        finally:
            watching.remove()
        _tell(prompts, seen, account)
        return found

    def _run(self, case: Case, prompts: Sequence[Encoded]) -> list[Output]:
        texts = [prompt.text for prompt in case.prompts]
        whole = case.task == "embed" and case.normalize is None and case.dimensions is None
        if whole and all(text is not None for text in texts) and prompts == self.encode(case):
            rows = self._model.encode(
                texts, batch_size=self.assignment.max_num_seqs, show_progress_bar=False
            )
            return [Output.of(row) for row in rows]
        found = []
        for start in range(0, len(prompts), self.assignment.max_num_seqs):
            found += self._batch(case, prompts[start : start + self.assignment.max_num_seqs])
        return found

    def _batch(self, case: Case, prompts: Sequence[Encoded]) -> list[Output]:
        features = self._features(prompts)
        with torch.no_grad():
            for module in self._model.children():
                # The last module normalises; a case may want the vector as it is.
                if type(module).__name__ != "Normalize":
                    features = module(features)
        if case.task == "token_embed":
            states = features["token_embeddings"]
            found = [states[i, : len(p.token_ids)] for i, p in enumerate(prompts)]
        else:
            found = list(features["sentence_embedding"])
        if case.dimensions is not None:
            found = [row[..., : case.dimensions] for row in found]
        if case.normalize is not False:
            found = [nn.functional.normalize(row, dim=-1) for row in found]
        return [Output.of(row.clone().numpy()) for row in found]

    def _features(self, prompts: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        longest = max(len(prompt.token_ids) for prompt in prompts)
        vocabulary = int(self._model[0].auto_model.config.vocab_size)
        for prompt in prompts:
            ids = prompt.token_ids
            if not ids or min(ids) < 0 or max(ids) >= vocabulary:
                raise SystemFailed(
                    f"expected at least one token id, all in [0, {vocabulary}), got {list(ids)[:8]}"
                )

        def filled(rows: Sequence[Sequence[int]]) -> torch.Tensor:
            return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])

        found = {
            "input_ids": filled([p.token_ids for p in prompts]),
            "attention_mask": filled([[1] * len(p.token_ids) for p in prompts]),
        }
        if any(any(p.type_ids) for p in prompts):
            found["token_type_ids"] = filled(
                [p.type_ids or (0,) * len(p.token_ids) for p in prompts]
            )
        return found

    def close(self) -> None:
        self._loaded = None


def _tell(
    prompts: Sequence[Encoded], seen: Sequence[Sequence[tuple[int, ...]]], account: Account
) -> None:
    """Each forward call, with whose tokens were in it: the library sorts prompts by length."""
    waiting: dict[tuple[int, ...], list[int]] = {}
    for index, prompt in enumerate(prompts):
        waiting.setdefault(prompt.token_ids, []).append(index)
    for rows in seen:
        entries = []
        for ids in rows:
            if not waiting.get(ids):
                raise SystemFailed(
                    f"the model was given {len(ids)} tokens that are no prompt of the case: "
                    "truncated, or tokenized otherwise"
                )
            entries.append((waiting[ids].pop(0), 0, len(ids), len(ids)))
        account.step(entries, rows=len(rows) * max(map(len, rows)))
    left = sum(map(len, waiting.values()))
    if left:
        raise SystemFailed(f"{left} of {len(prompts)} prompts never reached the model")
