"""From JSON data back to records, as each field's annotation says.

The annotation decides, never the value: `"nan"` is a number where a number belongs and a word
everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from harness.record.json_data import Json, RecordError

Decode = Callable[[Json], Json]

_NOT_FINITE = ("nan", "inf", "-inf")


def build(cls: type, data: Json) -> Json:
    """A record of `cls` from its JSON data. Raises RecordError, which names class and field."""
    if not isinstance(data, Mapping):
        raise RecordError(f"{cls.__name__} is a JSON object, got {type(data).__name__}")
    known = _decoders(cls)
    unknown = sorted(set(data) - set(known) - {"kind"})
    if unknown:
        raise RecordError(f"{cls.__name__} has no field {unknown}; known fields: {sorted(known)}")
    missing = sorted(_required(cls) - set(data))
    if missing:
        raise RecordError(f"{cls.__name__} lacks {missing}")
    values = {}
    for name, value in data.items():
        decode = known.get(name)
        if decode is None:
            continue  # the tag of a record's line; a checkpoint has a field of that name
        try:
            values[name] = decode(value)
        except (TypeError, ValueError) as error:
            raise RecordError(f"{cls.__name__}.{name}={value!r}: {error}") from error
    try:
        return cls(**values)
    except ValueError as error:
        raise RecordError(str(error)) from error


@cache
def _decoders(cls: type) -> Mapping[str, Decode]:
    hints = get_type_hints(cls)
    return {f.name: _decoder(hints[f.name]) for f in fields(cls)}


@cache
def _required(cls: type) -> frozenset[str]:
    return frozenset(
        f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING
    )


def _decoder(annotation: Any) -> Decode:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is float:
        return _number
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return annotation
    if is_dataclass(annotation) and isinstance(annotation, type):
        return lambda value: build(annotation, value)
    if origin is tuple:
        return _tuple(_decoder(arguments[0]))
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(_decoder(arguments[1]))
    if origin is UnionType:
        (inner,) = (a for a in arguments if a is not NoneType)
        decode = _decoder(inner)
        return lambda value: None if value is None else decode(value)
    return _as_it_is


def _as_it_is(value: Json) -> Json:
    return value


def _number(value: Json) -> float:
    if isinstance(value, str) and value not in _NOT_FINITE:
        raise ValueError(f"a number, or one of {_NOT_FINITE}, was expected")
    return float(value)


def _tuple(item: Decode) -> Decode:
    def decode(value: Json) -> Json:
        if not isinstance(value, list):
            raise TypeError(f"a list was expected, got {type(value).__name__}")
        return tuple(value) if item is _as_it_is else tuple(item(v) for v in value)

    return decode


def _mapping(item: Decode) -> Decode:
    def decode(value: Json) -> Json:
        if not isinstance(value, dict):
            raise TypeError(f"an object was expected, got {type(value).__name__}")
        return value if item is _as_it_is else {k: item(v) for k, v in value.items()}

    return decode
