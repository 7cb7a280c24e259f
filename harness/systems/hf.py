"""Hugging Face transformers in float32 as a system under test: padded batches, `sdpa` attention."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import transformers
from torch import nn
from torch._inductor.compile_fx import compile_fx
from transformers.utils import logging as transformers_logging

from harness.case import Case
from harness.judge.output import Output
from harness.oracle.warmup import settle_vector_math
from harness.systems.account import Account
from harness.systems.base import Assignment, Encoded, SystemFailed, SystemUnavailable
from harness.systems.plain import PlainSystem

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def hf(assignment: Assignment) -> HuggingFace:
    """Factory. No options of its own."""
    if assignment.options:
        raise SystemUnavailable(f"hf has no options, got {sorted(assignment.options)}")
    if assignment.dtype not in _DTYPES:
        raise SystemUnavailable(f"dtype={assignment.dtype!r}: expected one of {sorted(_DTYPES)}")
    return HuggingFace(assignment)


class HuggingFace(PlainSystem):
    """Owns: one model, and its compiled twin once that is asked for."""

    values: Mapping[str, tuple[str, ...]] = {"compile": ("compiled",)}
    why_not: Mapping[str, str] = {
        "chunk": "transformers runs the whole of a prompt in one forward call",
        "async": "transformers has no scheduler",
        "pp": "transformers runs on one rank here",
    }

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        settle_vector_math()
        transformers_logging.disable_progress_bar()
        self._loaded: Any = None  # transformers' auto classes are untyped
        self._compiled: Callable[..., Any] | None = None
        self._calls, self._graphs = 0, 0

    def about(self) -> Mapping[str, str]:
        return {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "MKL_CBWR": os.environ.get("MKL_CBWR", ""),
        }

    @property
    def _model(self) -> Any:
        if self._loaded is None:
            self._loaded = transformers.AutoModel.from_pretrained(
                self.assignment.folder,
                dtype=_DTYPES[self.assignment.dtype],
                attn_implementation="sdpa",
                local_files_only=True,
            ).eval()
        return self._loaded

    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: Account,
    ) -> Sequence[Output]:
        states = self._states(prompts, compiled=cell["compile"] == "compiled", account=account)
        finish = self._scores if case.task == "score" else self._vectors
        # Heads compute in float32, whatever the model does, and numpy has no bfloat16.
        return [Output.of(finish(case, rows.float()).numpy()) for rows in states]

    def _states(
        self, prompts: Sequence[Encoded], *, compiled: bool, account: Account
    ) -> list[torch.Tensor]:
        """Hidden states of every prompt, [n, D] each, `max_num_seqs` prompts a forward call."""
        model, found = self._model, []
        size = self.assignment.max_num_seqs
        for first in range(0, len(prompts), size):
            batch = prompts[first : first + size]
            self._check(batch)
            inputs = _padded(batch, typed=getattr(model.config, "type_vocab_size", 0) > 1)
            calls = self._calls
            forward = self._compiled_model() if compiled else model
            with torch.no_grad():
                states = forward(**inputs, use_cache=False).last_hidden_state
            account.compiled_calls += self._calls - calls
            account.graphs = self._graphs
            lengths = [len(prompt.token_ids) for prompt in batch]
            account.step(
                [(first + i, 0, n, n) for i, n in enumerate(lengths)],
                rows=inputs["input_ids"].numel(),
            )
            found += [states[i, :n].clone() for i, n in enumerate(lengths)]
        return found

    def _check(self, prompts: Sequence[Encoded]) -> None:
        """transformers gathers from whatever an id points at, or crashes the process."""
        config = self._model.config
        for prompt in prompts:
            ids, longest = prompt.token_ids, config.max_position_embeddings
            if not 1 <= len(ids) <= longest:
                raise SystemFailed(f"expected 1 to {longest} tokens, got {len(ids)}")
            if min(ids) < 0 or max(ids) >= config.vocab_size:
                raise SystemFailed(
                    f"expected token ids in [0, {config.vocab_size}), got {min(ids)} to {max(ids)}"
                )

    def _compiled_model(self) -> Callable[..., Any]:
        if self._compiled is None:

            def counted(graph: Any, inputs: Any) -> Callable[..., Any]:
                artefact: Any = compile_fx(graph, inputs)
                self._graphs += 1

                def call(*arguments: Any) -> Any:
                    self._calls += 1
                    return artefact(*arguments)

                return call

            torch._dynamo.config.fail_on_recompile_limit_hit = True
            self._compiled = torch.compile(self._model, backend=counted, dynamic=True)
        return self._compiled

    def _vectors(self, case: Case, states: torch.Tensor) -> torch.Tensor:
        pooling = self.assignment.checkpoint.pooling
        rows = states if case.task == "token_embed" else pooled(states, pooling)
        if case.dimensions is not None:
            rows = rows[..., : case.dimensions]
        return rows if case.normalize is False else nn.functional.normalize(rows, dim=-1)

    def _scores(self, case: Case, states: torch.Tensor) -> torch.Tensor:
        spec = self.assignment.checkpoint.reranker
        assert spec is not None, "score is no task of a checkpoint that is no reranker"
        if not self._model.config.tie_word_embeddings:
            raise SystemFailed("score: only a head tied to the embeddings is read here")
        rows = self._model.get_input_embeddings().weight.detach()[[spec.yes, spec.no]].float()
        yes, no = rows @ states[-1]
        logit = (yes - no).reshape(1)
        return logit if case.activation is False else torch.sigmoid(logit)

    def close(self) -> None:
        self._loaded, self._compiled = None, None


def pooled(states: torch.Tensor, pooling: str) -> torch.Tensor:
    """[n, D] to [D] by LAST, CLS or MEAN."""
    if pooling == "MEAN":
        return states.mean(dim=0)
    return states[-1] if pooling == "LAST" else states[0]


def _padded(prompts: Sequence[Encoded], *, typed: bool) -> dict[str, torch.Tensor]:
    """Right-padded ids and masks, [prompts, longest]."""
    longest = max(len(prompt.token_ids) for prompt in prompts)

    def filled(rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])

    found = {
        "input_ids": filled([p.token_ids for p in prompts]),
        "attention_mask": filled([[1] * len(p.token_ids) for p in prompts]),
    }
    if typed:
        found["token_type_ids"] = filled([p.type_ids or (0,) * len(p.token_ids) for p in prompts])
    elif any(any(p.type_ids) for p in prompts):
        raise SystemFailed("this model has no segments, got type ids")
    return found
