"""What a caller asks for and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class Task(StrEnum):
    """The five pooling tasks (names as in vLLM, so adapters need no table)."""

    EMBED = "embed"
    CLASSIFY = "classify"
    TOKEN_EMBED = "token_embed"
    TOKEN_CLASSIFY = "token_classify"
    EMBED_AND_TOKEN_CLASSIFY = "embed&token_classify"

    @property
    def is_token_level(self) -> bool:
        """Whether the output's length grows with the prompt."""
        return self not in (Task.EMBED, Task.CLASSIFY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingParams:
    """Per-request choices; None means the model's own default.

    A field that does not apply to the request's task is refused, never dropped.
    """

    normalize: bool | None = None
    """L2-normalise each output row (embed, token_embed)."""
    activation: bool | str | None = None
    """Apply the classifier's activation (classify, token_classify); False returns logits. By name:
    "identity", "sigmoid" or "softmax"."""
    dimensions: int | None = None
    """Matryoshka: keep the first `dimensions` values, then normalise again if normalising."""
    prompt_tokens: int | None = None
    """How many leading tokens are an instruction; a model that is trained to
    (`include_prompt: false`) leaves them out of what it pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingRequest:
    """One prompt and one task. `type_ids` is for encoders with segments, else empty."""

    request_id: str
    token_ids: tuple[int, ...]
    task: Task
    type_ids: tuple[int, ...] = ()
    params: PoolingParams = field(default_factory=PoolingParams)
    priority: int = 0
    """Lower runs first; equal ones in order of arrival."""
    cache_salt: str | None = None
    """With the prefix cache on: this prompt shares cached blocks only with those of equal salt."""

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingOutput:
    """The answer to one request; `values` is owned by the caller, on the host.

    Shapes: embed [D], classify [C], token_embed [n, D], token_classify [n, C],
    embed&token_classify [D + n * C]: the embedding, then the tokens' values. A head that picks
    tokens (step tags, markers) answers with a row for each of those. dtype: the head's.
    """

    request_id: str
    task: Task
    values: torch.Tensor
    num_prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingFailure:
    """A request that its head could not answer; what ran beside it has its answers."""

    request_id: str
    reason: str
    """Kind and message of what was raised."""


PoolingResult = PoolingOutput | PoolingFailure
"""What becomes of a request that was run to its end."""
