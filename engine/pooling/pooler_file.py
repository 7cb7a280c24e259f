"""`pooler.json`: what a checkpoint's other files do not say about its head.

    {"activation": "identity",                   of a classifier: identity, sigmoid or softmax
     "logit_bias": 0.5, "logit_scale": 2.0,      (logit - bias) * scale; or logit_mean, logit_sigma
     "step_tag_id": 12902,                       token_classify answers at this token only
     "returned_token_ids": [648, 387],           a class for each of these LM head rows
     "listwise": {"document_token_id": 5, "query_token_id": 6, "similarity": "cosine"}}

Every key may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.errors import CheckpointError
from engine.jsonfile import read_json_object
from engine.pooling.heads.classifier import SCORE_ACTIVATIONS, UNCALIBRATED, Calibration

FILE: Final = "pooler.json"
_KEYS: Final = (
    "activation",
    "logit_bias",
    "logit_scale",
    "logit_mean",
    "logit_sigma",
    "step_tag_id",
    "returned_token_ids",
    "listwise",
)
_LISTWISE_KEYS: Final = ("document_token_id", "query_token_id", "similarity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listwise:
    """Marker tokens, and how their rows are compared."""

    document: int
    query: int
    is_cosine: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolerFile:
    """The file's contents; all absent when there is no file."""

    activation: str | None = None
    calibration: Calibration = UNCALIBRATED
    step_tag: int | None = None
    returned: tuple[int, ...] = ()
    listwise: Listwise | None = None


def read_pooler_file(folder: Path) -> PoolerFile:
    """Raises CheckpointError for an unknown key or a value of no use."""
    file = folder / FILE
    if not file.exists():
        return PoolerFile()
    data = read_json_object(file)
    unknown = sorted(set(data) - set(_KEYS))
    if unknown:
        raise CheckpointError(f"{file} has keys {unknown}: expected some of {list(_KEYS)}")
    activation, tag = data.get("activation"), data.get("step_tag_id")
    returned, listwise = data.get("returned_token_ids", []), data.get("listwise")
    if activation is not None and activation not in SCORE_ACTIVATIONS:
        raise CheckpointError(
            f"activation={activation!r} in {file}: expected one of {list(SCORE_ACTIVATIONS)}"
        )
    if not _is_id(tag, optional=True) or not isinstance(returned, list):
        raise CheckpointError(
            f"step_tag_id={tag!r}, returned_token_ids={returned!r} in {file}: expected a token id "
            "and a list of them"
        )
    if not all(map(_is_id, returned)) or (returned and tag is None):
        raise CheckpointError(
            f"returned_token_ids={returned!r} in {file}: expected token ids, beside a step_tag_id"
        )
    return PoolerFile(
        activation=activation,
        calibration=_calibration(data, file),
        step_tag=tag,
        returned=tuple(returned),
        listwise=None if listwise is None else _listwise(listwise, file),
    )


def _calibration(data: dict[str, Any], file: Path) -> Calibration:
    affine, platt = ("logit_bias", "logit_scale"), ("logit_mean", "logit_sigma")
    given = [name for name in (*affine, *platt) if name in data]
    for name in given:
        value = data[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (name in ("logit_scale", "logit_sigma") and value == 0):
            raise CheckpointError(
                f"{name}={value!r} in {file}: expected a number, and a scale not 0"
            )
    if any(n in given for n in affine) and any(n in given for n in platt):
        raise CheckpointError(f"{file} has {given}: expected {affine} or {platt}, not both")
    bias = data.get("logit_bias", data.get("logit_mean", 0.0))
    scale = data.get("logit_scale", 1.0 / data.get("logit_sigma", 1.0))
    return Calibration(bias=float(bias), scale=float(scale))


def _listwise(data: object, file: Path) -> Listwise:
    if not isinstance(data, dict) or set(data) != set(_LISTWISE_KEYS):
        raise CheckpointError(
            f"listwise={data!r} in {file}: expected an object with {list(_LISTWISE_KEYS)}"
        )
    document, query = data["document_token_id"], data["query_token_id"]
    similarity = data["similarity"]
    is_pair = _is_id(document) and _is_id(query) and document != query
    if not is_pair or similarity not in ("cosine", "dot"):
        raise CheckpointError(
            f"listwise={data!r} in {file}: expected two token ids, and similarity cosine or dot"
        )
    return Listwise(document=document, query=query, is_cosine=similarity == "cosine")


def _is_id(value: object, *, optional: bool = False) -> bool:
    if value is None:
        return optional
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
