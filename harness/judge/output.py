"""One prompt's output as the judge sees it: a numpy array, its dtype and what its numbers mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

BITS: dict[str, type[np.unsignedinteger[Any]]] = {
    "float64": np.uint64,
    "float32": np.uint32,
    "float16": np.uint16,
    "bfloat16": np.uint16,
}
"""Dtypes the judge knows, and the unsigned integer of the same width."""


class OutputKind(StrEnum):
    """What the numbers mean, hence which error is measured."""

    EMBEDDING = "embedding"
    TOKEN_EMBEDDING = "token_embedding"
    """One row of it; a prompt's error is that of its worst row."""
    TOKEN_MATRIX = "token_matrix"
    """The same output as one vector: a small drift of every row shows here first."""
    LOGIT = "logit"
    SCORE = "score"
    TOKEN_LOGIT = "token_logit"
    TOKEN_SCORE = "token_score"

    @property
    def token_level(self) -> bool:
        """One row a token, [tokens, width]; otherwise one vector a prompt."""
        return self.value.startswith("token_")

    @property
    def vector(self) -> bool:
        """Direction and length matter (relative L2); otherwise each number does."""
        return self in (OutputKind.EMBEDDING, OutputKind.TOKEN_EMBEDDING, OutputKind.TOKEN_MATRIX)

    @property
    def whole(self) -> OutputKind | None:
        """The kind under which the same output is held as a whole as well."""
        return OutputKind.TOKEN_MATRIX if self is OutputKind.TOKEN_EMBEDDING else None

    @property
    def metric(self) -> str:
        """Name of the error that bounds are put on."""
        if self is OutputKind.TOKEN_MATRIX:
            return "matrix_relative_l2"
        return "relative_l2" if self.vector else "scaled_abs"


def kind_of(task: str, *, activation: bool | None = None) -> OutputKind:
    """The kind a task returns; `activation` False leaves a classifier's or reranker's logits."""
    match task:
        case "embed":
            return OutputKind.EMBEDDING
        case "token_embed":
            return OutputKind.TOKEN_EMBEDDING
        case "token_classify":
            return OutputKind.TOKEN_LOGIT if activation is False else OutputKind.TOKEN_SCORE
        case "classify" | "score":
            return OutputKind.LOGIT if activation is False else OutputKind.SCORE
    raise ValueError(
        f"task={task!r} is unknown; valid: embed, token_embed, classify, token_classify, score"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An array and its dtype. numpy has no bfloat16: such data is its bits, as uint16."""

    data: Array
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in BITS:
            raise ValueError(f"output dtype={self.dtype!r} is unknown; valid: {', '.join(BITS)}")
        expected = "uint16" if self.dtype == "bfloat16" else self.dtype
        if str(self.data.dtype) != expected:
            raise ValueError(
                f"an output of dtype={self.dtype} is held as numpy {expected}, got "
                f"{self.data.dtype}"
            )

    @classmethod
    def of(cls, array: Array, dtype: str | None = None) -> Output:
        """An output of a float array; `dtype` "bfloat16" when `array` holds bfloat16 bits."""
        return cls(data=np.ascontiguousarray(array), dtype=dtype or str(array.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def size(self) -> int:
        return int(self.data.size)

    @property
    def bits(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The values' bit patterns, same shape."""
        return self.data.view(BITS[self.dtype])

    @property
    def float64(self) -> Float64:
        """The values, exactly: every known dtype embeds in float64."""
        if self.dtype == "bfloat16":  # the upper half of a float32
            wide = (self.data.astype(np.uint32) << np.uint32(16)).view(np.float32)
            return wide.astype(np.float64)
        return self.data.astype(np.float64)

    @property
    def rows(self) -> Float64:
        """Values as [rows, width]: a vector, or a single number, is one row."""
        values = self.float64
        return values.reshape(1, -1) if values.ndim < 2 else values.reshape(len(values), -1)


Outputs = Sequence[Output]
"""One per prompt, in the order of the case's prompts."""
