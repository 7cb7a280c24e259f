"""The shapes of JSON values: one description that both checks a body and documents it.

A schema is a small part of JSON Schema 2020-12. Values are checked as they are, never converted:
`true` is no integer, `"3"` no number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = Any
Place = tuple[str | int, ...]
"""Where in a body: names of members and indexes of items, outermost first."""


class SchemaError(Exception):
    """A value is not what its schema says; `place` says which value.

    `reached`: how far all was well, by default up to `place`.
    """

    def __init__(
        self,
        message: str,
        place: Place,
        code: str = "invalid_type",
        *,
        reached: Place | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.place, self.code = message, place, code
        self.reached = place if reached is None else reached


class Schema(Protocol):
    """What a JSON value must be."""

    @property
    def expected(self) -> str:
        """In words: "a string"."""
        ...

    def check(self, value: Json, place: Place) -> None:
        """Raise SchemaError unless `value`, found at `place`, fits."""
        ...

    def to_json(self) -> dict[str, Json]:
        """As JSON Schema 2020-12."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string of at least `min_length` characters."""

    min_length: int = 1
    const: str | None = None

    @property
    def expected(self) -> str:
        if self.const is not None:
            return repr(self.const)
        return "a string" if not self.min_length else "a string that is not empty"

    def check(self, value: Json, place: Place) -> None:
        fits = isinstance(value, str) and len(value) >= self.min_length
        if not fits or (self.const is not None and value != self.const):
            raise _unfit(self, value, place)

    def to_json(self) -> dict[str, Json]:
        found: dict[str, Json] = {"type": "string"}
        if self.const is not None:
            return found | {"const": self.const}
        return found | ({"minLength": self.min_length} if self.min_length else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """A whole number within bounds, both inclusive."""

    minimum: int
    maximum: int | None = None

    @property
    def expected(self) -> str:
        if self.maximum is None:
            return f"an integer of at least {self.minimum}"
        return f"an integer from {self.minimum} to {self.maximum}"

    def check(self, value: Json, place: Place) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _unfit(self, value, place)
        if value < self.minimum or (self.maximum is not None and value > self.maximum):
            raise _unfit(self, value, place, code="invalid_value")

    def to_json(self) -> dict[str, Json]:
        found = {"type": "integer", "minimum": self.minimum}
        return found if self.maximum is None else found | {"maximum": self.maximum}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A finite number."""

    expected: str = field(default="a finite number", init=False)

    def check(self, value: Json, place: Place) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise _unfit(self, value, place)

    def to_json(self) -> dict[str, Json]:
        return {"type": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """True or false."""

    expected: str = field(default="true or false", init=False)

    def check(self, value: Json, place: Place) -> None:
        if not isinstance(value, bool):
            raise _unfit(self, value, place)

    def to_json(self) -> dict[str, Json]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """No value."""

    expected: str = field(default="null", init=False)

    def check(self, value: Json, place: Place) -> None:
        if value is not None:
            raise _unfit(self, value, place)

    def to_json(self) -> dict[str, Json]:
        return {"type": "null"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few strings."""

    values: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"one of {list(self.values)}"

    def check(self, value: Json, place: Place) -> None:
        if value not in self.values:
            raise _unfit(self, value, place, code="invalid_value")

    def to_json(self) -> dict[str, Json]:
        return {"type": "string", "enum": list(self.values)}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list with `min_items` to `max_items` items of one kind."""

    item: Schema
    min_items: int = 1
    max_items: int | None = None

    @property
    def expected(self) -> str:
        upper = "" if self.max_items is None else f" to {self.max_items}"
        number = f"{self.min_items}{upper}" if upper else f"at least {self.min_items}"
        return f"a list of {number} items, each {self.item.expected}"

    def check(self, value: Json, place: Place) -> None:
        if not isinstance(value, list):
            raise _unfit(self, value, place)
        if len(value) < self.min_items:
            raise _unfit(self, value, place, code="invalid_length")
        for index, item in enumerate(value):
            self.item.check(item, (*place, index))
        if self.max_items is not None and len(value) > self.max_items:
            raise SchemaError(
                f"{told(place)}: expected at most {self.max_items} items, got {len(value)}",
                place,
                "invalid_length",
                reached=(*place, len(value)),
            )

    def to_json(self) -> dict[str, Json]:
        found = {"type": "array", "items": self.item.to_json(), "minItems": self.min_items}
        return found if self.max_items is None else found | {"maxItems": self.max_items}


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A value that fits one of several schemas."""

    options: tuple[Schema, ...]

    @property
    def expected(self) -> str:
        return ", or ".join(option.expected for option in self.options)

    def check(self, value: Json, place: Place) -> None:
        errors: list[SchemaError] = []
        for option in self.options:
            try:
                option.check(value, place)
            except SchemaError as error:
                errors.append(error)
            else:
                return
        raise self._best(errors, value, place)

    def _best(self, errors: Sequence[SchemaError], value: Json, place: Place) -> SchemaError:
        """What the option that got furthest says; when several did, all that is possible."""
        furthest = max(error.reached for error in errors)
        best = [error for error in errors if error.reached == furthest]
        return best[0] if len(best) == 1 else _unfit(self, value, place)

    def to_json(self) -> dict[str, Json]:
        return {"anyOf": [option.to_json() for option in self.options]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A member of an object; `meaning` is for whoever reads the documentation."""

    name: str
    schema: Schema
    meaning: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Object:
    """An object with these members and no others."""

    fields: tuple[Field, ...]

    @property
    def expected(self) -> str:
        return f"an object with {[member.name for member in self.fields]}"

    def check(self, value: Json, place: Place) -> None:
        if not isinstance(value, dict):
            raise _unfit(self, value, place)
        names = [member.name for member in self.fields]
        for name in value:
            if name not in names:
                raise SchemaError(
                    f"unknown parameter {name!r}; valid: {', '.join(names)}",
                    (*place, name),
                    "unknown_parameter",
                )
        for member in self.fields:
            if member.name in value:
                member.schema.check(value[member.name], (*place, member.name))
            elif member.required:
                raise SchemaError(
                    f"{member.name} is missing: expected {member.schema.expected}",
                    (*place, member.name),
                    "missing_parameter",
                )

    def to_json(self) -> dict[str, Json]:
        properties = {
            member.name: member.schema.to_json()
            | ({"description": member.meaning} if member.meaning else {})
            for member in self.fields
        }
        required = [member.name for member in self.fields if member.required]
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        } | ({"required": required} if required else {})


def told(place: Place) -> str:
    """A place in the way a client would write it: `input[3]`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the body"


def _unfit(schema: Schema, value: Json, place: Place, *, code: str = "invalid_type") -> SchemaError:
    return SchemaError(
        f"{told(place)}: expected {schema.expected}, got {_described(value)}", place, code
    )


def _described(value: Json) -> str:
    """A value in a few words; a client's text may be long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"a list of {len(value)} items"
    if isinstance(value, dict):
        return f"an object with {len(value)} members"
    text = repr(value) if isinstance(value, str) else str(value)[:40]
    return text if len(text) <= 40 else f"{text[:36]}...'"
