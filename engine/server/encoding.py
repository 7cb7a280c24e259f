"""Numbers on the wire, without losing a bit of them."""

from __future__ import annotations

import base64

import torch

from engine.pooling.sparse import SparseVector
from engine.server.facts import ModelFacts
from engine.server.schema import (
    AnyOf,
    Choice,
    Field,
    Integer,
    Json,
    ListOf,
    Number,
    Object,
    Schema,
    Text,
)


def encoding_field(facts: ModelFacts) -> Field:
    """`encoding_format`. base64 holds float32, so a float64 model does not offer it."""
    choices = ("float",) if facts.dtype == "float64" else ("float", "base64")
    if facts.is_sparse:
        choices = (*choices, "sparse")
    return Field(
        name="encoding_format",
        schema=Choice(choices),
        meaning="float: JSON numbers that read back to the model's own bits. base64: the same "
        "values as little-endian float32. sparse: indices and values of what is not zero.",
    )


def encoded(values: torch.Tensor, encoding: str) -> Json:
    """Values as nested lists of numbers, or as base64 of little-endian float32 in row order.

    Both are exact: every float32, bfloat16 and float16 is a float32 and a double.
    """
    if encoding == "base64":
        return base64.b64encode(values.float().numpy().astype("<f4").tobytes()).decode("ascii")
    if encoding == "sparse":
        sparse = SparseVector.of(values)
        return {"indices": list(sparse.indices), "values": list(sparse.values)}
    return values.tolist()


def encoded_schema(*, nested: bool) -> Schema:
    """What `encoded` gives; `nested`: a matrix is possible."""
    row = ListOf(Number())
    index = ListOf(Integer(minimum=0), min_items=0)
    sparse = Object(
        (
            Field(name="indices", schema=index, required=True),
            Field(name="values", schema=ListOf(Number(), min_items=0), required=True),
        )
    )
    return AnyOf((row, ListOf(row), Text(), sparse) if nested else (row, Text(), sparse))
