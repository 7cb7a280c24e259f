"""/score: relevance of documents to queries, in the order given."""

from __future__ import annotations

from engine.server.endpoint import (
    INDEX,
    Endpoint,
    Values,
    body_of,
    envelope,
    envelope_schema,
    new_id,
)
from engine.server.errors import invalid
from engine.server.schema import AnyOf, Field, Json, ListOf, Number, Object, Text
from engine.server.scores import Placed
from engine.server.scoring import Scorer
from engine.server.service import Service

_NAMES = (("queries", "documents"), ("text_1", "text_2"))


def score(service: Service, scorer: Scorer | None) -> Endpoint:
    """One score for each pair: 1:1, one query for N documents, or N:N."""

    async def run(values: Values) -> Json:
        if scorer is None:
            raise invalid(
                f"{service.facts.name} gives no scores: it neither classifies nor embeds",
                code="not_applicable",
            )
        answer_id = new_id("score")
        queries, documents = _pairs(values)
        found = await scorer.score(answer_id, queries, documents, values)
        data = [
            {"index": index, "object": "score", "score": value}
            for index, value in enumerate(found.values)
        ]
        return envelope(service, answer_id, data, found.num_tokens)

    texts = AnyOf((Text(), ListOf(Text(), max_items=service.config.max_inputs)))
    sides = tuple(
        Field(name=name, schema=texts, meaning=f"With {other}; one text or several.")
        for pair in _NAMES
        for name, other in (pair, pair[::-1])
    )
    item = Object(
        (
            INDEX,
            Field(name="object", schema=Text(const="score"), required=True),
            Field(name="score", schema=Number(), required=True),
        )
    )
    method = "" if scorer is None else f" Scored by a {scorer.method}."
    return Endpoint(
        paths=("/score", "/v1/score"),
        name="score",
        summary="How relevant documents are to queries: 1 to 1, 1 to N or N to N." + method,
        body=body_of(service, *sides, *(() if scorer is None else scorer.fields)),
        answer=envelope_schema(Field(name="data", schema=ListOf(item), required=True)),
        run=run,
        offered=scorer is not None,
    )


def placed(name: str, value: str | list[str]) -> list[Placed]:
    """Texts of a field that takes one or several."""
    if isinstance(value, str):
        return [Placed(place=name, text=value)]
    return [Placed(place=f"{name}[{i}]", text=text) for i, text in enumerate(value)]


def _pairs(values: Values) -> tuple[list[Placed], list[Placed]]:
    given = [pair for pair in _NAMES if any(name in values for name in pair)]
    if len(given) != 1 or not all(name in values for name in given[0]):
        names = [name for pair in _NAMES for name in pair if name in values]
        raise invalid(
            f"expected queries and documents, or text_1 and text_2, got {names or 'neither'}",
            code="missing_parameter",
        )
    (first, second), (queries, documents) = given[0], [placed(n, values[n]) for n in given[0]]
    if len(queries) not in (1, len(documents)):
        raise invalid(
            f"{len(queries)} {first} for {len(documents)} {second}: expected one for all, or as "
            "many of each",
            param=first,
            code="invalid_length",
        )
    return queries, documents
