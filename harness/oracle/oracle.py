"""The reference model: Hugging Face, sdpa attention, float64, one prompt at a time.

`Oracle(path)` computes in float64 from the checkpoint's weights as they are after rounding to
float32; `Oracle(path, dtype="float32")` is the plain Hugging Face model, whose distance from the
former is "Hugging Face's own error". For half precision `weights` names the dtype to round to, so
that both start from the same. Every result is float64, owned by the caller, on the CPU.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from safetensors import safe_open
from torch import nn
from transformers import AutoModel
from transformers.utils import logging as transformers_logging

from harness.oracle.errors import IncompleteWeights, InvalidPrompt
from harness.oracle.precision import replace_norms, replace_rotations, require_float64
from harness.oracle.warmup import settle_vector_math

Dtype = Literal["float64", "float32", "bfloat16", "float16"]
Pooling = Literal["LAST", "MEAN", "CLS"]
POOLINGS: tuple[Pooling, ...] = ("LAST", "MEAN", "CLS")
_POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta")
DEVICE = "PARITY_ORACLE_DEVICE"
"""Environment variable: where the reference computes, `cpu` or `cuda`. float64 either way."""
_REMEMBERED = 4  # several outputs of one prompt (LAST, tokens, a score) are asked for in a row


class Reference(Protocol):
    """What the judge asks of a reference; `Oracle` computes it, `CachedOracle` remembers it.

    n is the number of tokens, D the hidden size.
    """

    def embed(
        self,
        token_ids: Sequence[int],
        pooling: Pooling,
        *,
        normalize: bool,
        type_ids: Sequence[int] | None = None,
    ) -> torch.Tensor:
        """The pooled vector, [D] float64."""
        ...

    def token_embed(
        self,
        token_ids: Sequence[int],
        *,
        normalize: bool,
        type_ids: Sequence[int] | None = None,
    ) -> torch.Tensor:
        """One vector per token, [n, D] float64."""
        ...

    def yes_no_logit(self, token_ids: Sequence[int], yes_id: int, no_id: int) -> float:
        """logit(yes) - logit(no) after the last token; the score is its sigmoid."""
        ...

    def token_yes_no_logits(
        self, token_ids: Sequence[int], yes_id: int, no_id: int
    ) -> torch.Tensor:
        """logit(yes) - logit(no) after each token, [n] float64."""
        ...

    def hidden(
        self, token_ids: Sequence[int], type_ids: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Hidden states after the final norm, [n, D] float64."""
        ...

    def layer_hidden(
        self, token_ids: Sequence[int], type_ids: Sequence[int] | None = None
    ) -> list[torch.Tensor]:
        """The residual stream after each layer, before any final norm; one [n, D] float64 each."""
        ...


class Oracle:
    """A reference model, loaded.

    Owns: the Hugging Face module and the hidden states of the last few prompts.
    """

    def __init__(self, path: Path, *, dtype: Dtype = "float64", weights: Dtype = "float32") -> None:
        """`dtype` to compute in, from the checkpoint's weights rounded to `weights` first."""
        settle_vector_math()
        self._path = path
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._rounded: torch.dtype = getattr(torch, weights)
        self._model = _load(path).to(self._rounded).to(self._dtype)
        self._device = torch.device(os.environ.get(DEVICE, "cpu"))
        self._model = self._model.to(self._device)
        self._remembered: OrderedDict[tuple[object, object], torch.Tensor] = OrderedDict()
        if dtype == "float64":
            replace_norms(self._model)
            replace_rotations(self._model)
            require_float64(self._model, lambda: self._forward((3, 4, 5), None))

    def hidden(
        self, token_ids: Sequence[int], type_ids: Sequence[int] | None = None
    ) -> torch.Tensor:
        """Hidden states after the final norm (BERT: last_hidden_state), [n, D] float64."""
        return self._states(token_ids, type_ids).double().clone()

    def layer_hidden(
        self, token_ids: Sequence[int], type_ids: Sequence[int] | None = None
    ) -> list[torch.Tensor]:
        """The residual stream after each layer, before any final norm; one [n, D] float64 each."""
        rows: list[torch.Tensor] = []

        def note(_module: nn.Module, _arguments: object, output: Any) -> None:
            stream = output[0] if isinstance(output, tuple) else output
            rows.append(stream[0].double().clone())

        handles = [layer.register_forward_hook(note) for layer in self._layers()]
        try:
            self._forward(token_ids, type_ids)
        finally:
            for handle in handles:
                handle.remove()
        return rows

    def embed(
        self,
        token_ids: Sequence[int],
        pooling: Pooling,
        *,
        normalize: bool,
        type_ids: Sequence[int] | None = None,
    ) -> torch.Tensor:
        """The pooled vector, [D] float64; L2-normalised if `normalize`."""
        states = self._states(token_ids, type_ids)
        if pooling == "LAST":
            pooled = states[-1]
        elif pooling == "CLS":
            pooled = states[0]
        elif pooling == "MEAN":
            pooled = states.mean(dim=0)
        else:
            raise InvalidPrompt(f"expected pooling one of {POOLINGS}, got pooling={pooling!r}")
        return _finish(pooled, normalize=normalize)

    def token_embed(
        self,
        token_ids: Sequence[int],
        *,
        normalize: bool,
        type_ids: Sequence[int] | None = None,
    ) -> torch.Tensor:
        """One vector per token, [n, D] float64; each row L2-normalised if `normalize`."""
        return _finish(self._states(token_ids, type_ids), normalize=normalize)

    def yes_no_logit(self, token_ids: Sequence[int], yes_id: int, no_id: int) -> float:
        """logit(yes) - logit(no) after the last token, from two rows of the LM head."""
        last = self._states(token_ids, None)[-1]
        yes, no = self._head_rows((yes_id, no_id)) @ last
        return float(yes - no)

    def token_yes_no_logits(
        self, token_ids: Sequence[int], yes_id: int, no_id: int
    ) -> torch.Tensor:
        """logit(yes) - logit(no) after each token, [n] float64."""
        logits = self._states(token_ids, None) @ self._head_rows((yes_id, no_id)).T
        return (logits[:, 0] - logits[:, 1]).to(torch.float64)

    def _states(self, token_ids: Sequence[int], type_ids: Sequence[int] | None) -> torch.Tensor:
        """Hidden states in the model's own dtype, remembered for the last few prompts; [n, D]."""
        key = (tuple(token_ids), None if type_ids is None else tuple(type_ids))
        if key not in self._remembered:
            self._remembered[key] = self._forward(token_ids, type_ids)
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        self._remembered.move_to_end(key)
        return self._remembered[key]

    def _forward(self, token_ids: Sequence[int], type_ids: Sequence[int] | None) -> torch.Tensor:
        self._validate(token_ids, type_ids)
        inputs = {"input_ids": torch.tensor([list(token_ids)], device=self._device)}
        if type_ids is not None:
            inputs["token_type_ids"] = torch.tensor([list(type_ids)], device=self._device)
        # Neither cache nor padding: the whole prompt in one pass, which is what "reference" means.
        # no_grad, not inference mode, so that callers may do arithmetic on the result freely.
        with torch.no_grad():
            states: torch.Tensor = self._model(**inputs, use_cache=False).last_hidden_state
        found = states[0].cpu()
        if self._device.type == "cuda":  # the system under test wants the memory next
            del states
            torch.cuda.empty_cache()
        return found

    def _layers(self) -> nn.ModuleList:
        count = self._model.config.num_hidden_layers
        for module in self._model.modules():
            if isinstance(module, nn.ModuleList) and len(module) == count:
                return module
        raise InvalidPrompt(f"expected {type(self._model).__name__} to list its {count} layers")

    def _head_rows(self, ids: tuple[int, ...]) -> torch.Tensor:
        """Rows of the LM head, [len(ids), D]: the embedding's if tied, else the checkpoint's."""
        if self._model.config.tie_word_embeddings:
            embedding: torch.Tensor = self._model.get_input_embeddings().weight
            return embedding.detach()[list(ids)].cpu()
        with safe_open(self._path / "model.safetensors", framework="pt") as tensors:
            head = tensors.get_slice("lm_head.weight")
            rows = torch.cat([head[row : row + 1] for row in ids])
        return rows.to(self._rounded).to(self._dtype)

    def _validate(self, token_ids: Sequence[int], type_ids: Sequence[int] | None) -> None:
        config = self._model.config
        count, longest, vocabulary = (
            len(token_ids),
            config.max_position_embeddings,
            config.vocab_size,
        )
        if config.model_type in _POSITIONS_AFTER_PADDING:
            longest -= config.pad_token_id + 1
            if config.pad_token_id in token_ids:
                raise InvalidPrompt(
                    f"expected a prompt without the padding token {config.pad_token_id}, which "
                    f"{config.model_type} gives no position of its own"
                )
        if not 1 <= count <= longest:
            raise InvalidPrompt(f"expected 1 to {longest} tokens, got {count}")
        lowest, highest = min(token_ids), max(token_ids)
        if lowest < 0 or highest >= vocabulary:
            raise InvalidPrompt(
                f"expected token ids in [0, {vocabulary}), got {lowest} to {highest}"
            )
        if type_ids is None:
            return
        types = getattr(config, "type_vocab_size", 0)
        if not types:
            raise InvalidPrompt(f"expected no type ids, {config.model_type} has no segments")
        if len(type_ids) != count or min(type_ids) < 0 or max(type_ids) >= types:
            raise InvalidPrompt(
                f"expected {count} type ids in [0, {types}), got {len(type_ids)} from "
                f"{min(type_ids, default=None)} to {max(type_ids, default=None)}"
            )


def _load(path: Path) -> Any:  # transformers' auto classes are untyped
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # a head beside the model is no news: see below
    model, report = AutoModel.from_pretrained(
        path,
        dtype=torch.float32,
        attn_implementation="sdpa",
        local_files_only=True,
        output_loading_info=True,
    )
    # A pooler does not feed the hidden states; anything else missing would be random numbers.
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing or report["mismatched_keys"]:
        raise IncompleteWeights(
            f"expected every tensor of {path.name}, missing={missing} "
            f"mismatched={sorted(map(str, report['mismatched_keys']))}"
        )
    return model.eval()


def _finish(rows: torch.Tensor, *, normalize: bool) -> torch.Tensor:
    """Normalise in the model's dtype, then hand out as float64."""
    finished = nn.functional.normalize(rows, dim=-1) if normalize else rows
    return finished.double().clone()
