"""What a schema lets through, what it says of the rest, and what it tells a reader.

Passes wrongly if Python's idea of an integer decided, to which `true` is one. Ruled out by
suites/meta/test_suites_can_fail.py: `true-is-an-integer`.
"""

from __future__ import annotations

import pytest

from engine.server.schema import (
    AnyOf,
    Choice,
    Field,
    Flag,
    Integer,
    Json,
    ListOf,
    Null,
    Number,
    Object,
    Schema,
    SchemaError,
    Text,
)

TOKEN = Integer(minimum=0, maximum=9)
INPUT = AnyOf((Text(), ListOf(Text(), max_items=3), ListOf(TOKEN), ListOf(ListOf(TOKEN))))
BODY = Object((Field(name="input", schema=INPUT, required=True), Field(name="on", schema=Flag())))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INPUT, "a"),
        (INPUT, ["a", "b", "c"]),
        (INPUT, [0, 9]),
        (INPUT, [[0], [1, 2]]),
        (BODY, {"input": "a"}),
        (BODY, {"input": [1], "on": False}),
        (Integer(minimum=1), 10**30),
        (Number(), -0.5),
        (Number(), 3),
        (Null(), None),
        (Text(min_length=0), ""),
        (Choice(("x", "y")), "y"),
    ],
)
def test_what_fits(schema: Schema, value: Json) -> None:
    schema.check(value, ())


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (BODY, [], "the body: expected an object with ['input', 'on'], got a list of 0 items"),
        (BODY, {}, "input is missing: expected a string that is not empty, or a list of 1 to 3"),
        (BODY, {"input": "a", "of": 1}, "unknown parameter 'of'; valid: input, on"),
        (BODY, {"input": "a", "on": 1}, "on: expected true or false, got 1"),
        (BODY, {"input": [1, 10]}, "input[1]: expected an integer from 0 to 9, got 10"),
        (BODY, {"input": [1, True]}, "input[1]: expected an integer from 0 to 9, got true"),
        (BODY, {"input": [1, 2.0]}, "input[1]: expected an integer from 0 to 9, got 2.0"),
        (BODY, {"input": [[1], [-1]]}, "input[1][0]: expected an integer from 0 to 9, got -1"),
        (BODY, {"input": ["a", 1]}, "input[1]: expected a string that is not empty, got 1"),
        (BODY, {"input": ["a"] * 4}, "input: expected at most 3 items, got 4"),
        (BODY, {"input": ""}, "input: expected a string that is not empty, or a list of 1 to 3"),
        (BODY, {"input": []}, "input: expected a string that is not empty, or a list of 1 to 3"),
        (
            BODY,
            {"input": None},
            "each a list of at least 1 items, each an integer from 0 to 9, got null",
        ),
        (Number(), float("nan"), "the body: expected a finite number, got nan"),
        (Number(), float("inf"), "the body: expected a finite number, got inf"),
        (Number(), "1", "the body: expected a finite number, got '1'"),
        (Null(), 0, "the body: expected null, got 0"),
        (Text(const="a"), "b", "the body: expected 'a', got 'b'"),
        (Choice(("x",)), ["x"], "the body: expected one of ['x'], got a list of 1 items"),
        (
            Flag(),
            "y" * 99,
            "the body: expected true or false, got 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy...'",
        ),
    ],
)
def test_what_does_not(schema: Schema, value: Json, told: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema.check(value, ())
    assert told in caught.value.message


def test_the_documentation_is_json_schema() -> None:
    token = {"type": "integer", "minimum": 0, "maximum": 9}
    texts = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
    tokens = {"type": "array", "items": token, "minItems": 1}
    assert BODY.to_json() == {
        "type": "object",
        "properties": {
            "input": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    texts | {"maxItems": 3},
                    tokens,
                    {"type": "array", "items": tokens, "minItems": 1},
                ]
            },
            "on": {"type": "boolean"},
        },
        "additionalProperties": False,
        "required": ["input"],
    }
