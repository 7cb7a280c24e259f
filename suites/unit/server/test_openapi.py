"""Bodies drawn from the document that the server serves: what it promises is what it does.

Passes wrongly if no body came to the edge of what the document allows. Ruled out by
suites/meta/test_suites_can_fail.py: `the-document-promises-empty-texts`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.server.openapi import ERROR
from suites.unit.server.serving import NAME, Server

PATHS = ("/v1/embeddings", "/pooling", "/classify", "/score", "/v1/score", "/rerank", "/v1/rerank")
TEXT = st.text(max_size=12)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema of the document allows."""
    if "anyOf" in schema:
        return st.one_of([fitting(option) for option in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "string":
            return st.text(min_size=schema.get("minLength", 0), max_size=12)
        case "integer":
            return st.integers(schema["minimum"], schema.get("maximum", schema["minimum"] + 9))
        case "boolean":
            return st.booleans()
        case "array":
            items = fitting(schema["items"])
            return st.lists(items, min_size=schema["minItems"], max_size=schema["minItems"] + 2)
        case "object":
            needed = schema.get("required", [])
            members = {name: fitting(found) for name, found in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: members[name] for name in needed},
                optional={name: s for name, s in members.items() if name not in needed},
            )
    raise AssertionError(f"the document has a schema that no body can be drawn from: {schema}")


@st.composite
def broken(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """A fitting body with one thing changed that need not fit any more."""
    body = draw(fitting(schema))
    match draw(st.sampled_from(["member", "extra", "missing", "body"])):
        case "member":
            return body | {draw(st.sampled_from(sorted(schema["properties"]))): draw(JUNK)}
        case "extra":
            return body | {draw(TEXT): draw(JUNK)}
        case "missing":
            return {k: v for k, v in body.items() if k != draw(st.sampled_from([*body, ""]))}
    return draw(JUNK)


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    return server.get("/openapi.json").json()


def body_schema(document: dict[str, Any], path: str) -> dict[str, Any]:
    found = document["paths"][path]["post"]["requestBody"]
    assert found["required"]
    return found["content"]["application/json"]["schema"]


@contextmanager
def shown(path: str, body: object) -> Iterator[None]:
    """Writes the body of every example that fails, the last one being the smallest that was tried.

    Hypothesis' own report has none where it gives a failure up as one of the drawing
    (`FlakyStrategyDefinition`); pytest shows what was written beside whatever is raised.
    """
    try:
        yield
    except Exception:
        sys.stdout.write(f"POST {path} {body!r}\n")
        raise


def test_a_failing_body_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError), shown("/pooling", {"input": ""}):
        raise AssertionError
    assert capsys.readouterr().out == "POST /pooling {'input': ''}\n"


def test_the_document_names_every_route_once(document: dict[str, Any]) -> None:
    assert set(document["paths"]) == {*PATHS, "/health", "/v1/models", "/metrics"}
    operations = [op["operationId"] for item in document["paths"].values() for op in item.values()]
    assert len(set(operations)) == len(operations)
    assert document["openapi"] == "3.1.0"


def test_the_least_text_that_is_promised_is_the_least_that_is_taken(
    server: Server, document: dict[str, Any]
) -> None:
    text = body_schema(document, "/v1/embeddings")["properties"]["input"]["anyOf"][0]
    assert text["type"] == "string"
    least = text.get("minLength", 0)
    bodies = ({"input": "a" * length} for length in (least, least - 1))
    assert [server.ask("/v1/embeddings", body).status_code for body in bodies] == [200, 400]


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=30)
@given(data=st.data())
def test_no_body_makes_a_server_error(
    server: Server, document: dict[str, Any], path: str, data: st.DataObject
) -> None:
    schema = body_schema(document, path)
    body = data.draw(fitting(schema) | broken(schema))
    response = server.ask(path, body)
    declared = document["paths"][path]["post"]["responses"]
    with shown(path, body):
        assert str(response.status_code) in declared, response.text
        assert response.status_code < 500, response.text
        if response.status_code == 200:
            answers = {p: e.answer for e in server.app.state.endpoints for p in e.paths}
            answers[path].check(response.json(), ())
        else:
            ERROR.check(response.json(), ())


@pytest.mark.parametrize("path", ["/v1/embeddings", "/classify"])
@settings(max_examples=30)
@given(data=st.data())
def test_what_the_document_allows_is_answered(
    server: Server, document: dict[str, Any], path: str, data: st.DataObject
) -> None:
    schema = body_schema(document, path)
    body = data.draw(fitting(schema).map(lambda body: body | {"model": NAME}))
    if "truncate_prompt_tokens" not in body:  # a side alone has nothing to cut, says its meaning
        body.pop("truncation_side", None)
    response = server.ask(path, body)
    with shown(path, body):
        assert response.status_code == 200, response.text
