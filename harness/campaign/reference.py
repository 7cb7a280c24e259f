"""What a case's outputs are according to float64: the oracle's answer in the case's own terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.case import Case, CaseError
from harness.checkpoints.catalogue import Checkpoint
from harness.judge.output import Float64, Output
from harness.systems.base import Encoded

if TYPE_CHECKING:  # a driver judges without loading torch and transformers
    from harness.oracle.oracle import Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReference:
    """The oracle for one checkpoint, asked in cases. Never sees an engine."""

    oracle: Reference
    checkpoint: Checkpoint

    def outputs(self, case: Case, prompts: Sequence[Encoded]) -> tuple[Output, ...]:
        """float64 outputs, one per prompt."""
        return tuple(Output.of(self._one(case, prompt)) for prompt in prompts)

    def _one(self, case: Case, prompt: Encoded) -> Float64:
        types = list(prompt.type_ids) or None
        if case.task in ("embed", "token_embed"):
            normalize = True if case.normalize is None else case.normalize
            plain = case.dimensions is None
            if case.task == "embed":
                rows = self.oracle.embed(
                    prompt.token_ids,
                    self.checkpoint.pooling,
                    normalize=normalize and plain,
                    type_ids=types,
                )
            else:
                rows = self.oracle.token_embed(
                    prompt.token_ids, normalize=normalize and plain, type_ids=types
                )
            values: Float64 = rows.numpy()
            return values if plain else _shortened(values, case.dimensions or 0, normalize)
        spec = self.checkpoint.reranker
        if spec is None:
            raise CaseError(
                f"task={case.task!r} is not supported: {self.checkpoint.name} has no reranker; "
                f"it answers {', '.join(self.checkpoint.tasks)}"
            )
        if case.task == "token_classify":
            logits = self.oracle.token_yes_no_logits(prompt.token_ids, spec.yes, spec.no)
            found: Float64 = logits.numpy()[:, None]
        else:
            found = np.array([self.oracle.yes_no_logit(prompt.token_ids, spec.yes, spec.no)])
        return found if case.activation is False else 1.0 / (1.0 + np.exp(-found))


def _shortened(values: Float64, dimensions: int, normalize: bool) -> Float64:  # noqa: FBT001
    """Matryoshka: slice, then normalise what is left."""
    short: Float64 = values[..., :dimensions]
    if not normalize:
        return np.ascontiguousarray(short)
    norms: Float64 = np.linalg.norm(short, axis=-1, keepdims=True)
    return np.asarray(short / norms, dtype=np.float64)
