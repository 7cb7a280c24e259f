"""Records as JSON data, and the one error of a file that cannot be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

Json = Any
"""A value made of dict, list, str, int, float, bool and None only."""


class RecordError(ValueError):
    """A record file holds something this version cannot read."""


def to_json(value: Json) -> Json:
    """A record as JSON data. NaN and infinities become the strings "nan", "inf", "-inf"."""
    if hasattr(value, "__dataclass_fields__"):
        data = {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
        kind = getattr(type(value), "kind", None)
        return {"kind": kind, **data} if isinstance(kind, str) else data
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
