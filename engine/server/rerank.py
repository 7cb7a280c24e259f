"""/rerank, as Cohere and Jina have it: documents by falling relevance, each with its index."""

from __future__ import annotations

from engine.server.endpoint import ID, INDEX, MODEL, USAGE, Endpoint, Values, body_of, new_id
from engine.server.errors import invalid
from engine.server.schema import AnyOf, Field, Flag, Integer, Json, ListOf, Number, Object, Text
from engine.server.score import placed
from engine.server.scores import Placed
from engine.server.scoring import Scorer
from engine.server.service import Service


def rerank(service: Service, scorer: Scorer | None) -> Endpoint:
    """The `top_n` most relevant documents; equal scores keep the order given."""

    async def run(values: Values) -> Json:
        if scorer is None:
            raise invalid(
                f"{service.facts.name} gives no scores: it neither classifies nor embeds",
                code="not_applicable",
            )
        texts = [d if isinstance(d, str) else d["text"] for d in values["documents"]]
        answer_id = new_id("rerank")
        query = Placed(place="query", text=values["query"])
        found = await scorer.score(answer_id, [query], placed("documents", texts), values)
        order = sorted(range(len(texts)), key=lambda index: -found.values[index])
        results = [
            {"index": index, "relevance_score": found.values[index]}
            | ({"document": {"text": texts[index]}} if values.get("return_documents") else {})
            for index in order[: values.get("top_n")]
        ]
        return {
            "id": answer_id,
            "model": service.facts.name,
            "results": results,
            "usage": {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens},
        }

    wrapped = Object((Field(name="text", schema=Text(), required=True),))
    documents = ListOf(AnyOf((Text(), wrapped)), max_items=service.config.max_inputs)
    item = Object(
        (
            INDEX,
            Field(name="relevance_score", schema=Number(), required=True),
            Field(name="document", schema=wrapped),
        )
    )
    method = "" if scorer is None else f" Scored by a {scorer.method}."
    return Endpoint(
        paths=("/rerank", "/v1/rerank"),
        name="rerank",
        summary="Documents by falling relevance to a query, each with its index." + method,
        body=body_of(
            service,
            Field(name="query", schema=Text(), required=True),
            Field(name="documents", schema=documents, required=True),
            Field(
                name="top_n",
                schema=Integer(minimum=1),
                meaning="How many results to return; by default, and when larger, all.",
            ),
            Field(
                name="return_documents",
                schema=Flag(),
                meaning="Repeat each document in its result; by default not.",
            ),
            *(() if scorer is None else scorer.fields),
        ),
        answer=Object(
            (ID, MODEL, Field(name="results", schema=ListOf(item), required=True), USAGE)
        ),
        run=run,
        offered=scorer is not None,
    )
