"""Scores by a listwise reranker: all documents of a query in one prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from jinja2 import Environment, StrictUndefined, TemplateError

from engine.errors import CheckpointError, RequestError
from engine.request import Task
from engine.server.endpoint import MAX_TOKENS_PER_DOC, Values, num_tokens, params_of
from engine.server.schema import Field, Text
from engine.server.scores import Placed, Scores
from engine.server.service import Prompt, Service
from engine.tokenization import TokenizedPrompt

TEMPLATE_FILE: Final = "listwise.jinja"
"""The prompt, over `instruction`, `query` and `documents`, markers and all."""


class Listwise:
    """A prompt for each query; documents see each other, so their order may matter."""

    method = "listwise"

    def __init__(self, service: Service) -> None:
        """Raises CheckpointError without a template of use."""
        self._service = service
        file = service.batcher.engine.config.model / TEMPLATE_FILE
        # Prompts are no HTML: autoescaping would change the text that the model reads.
        environment = Environment(autoescape=False, undefined=StrictUndefined)
        try:
            self._template = environment.from_string(file.read_text(encoding="utf-8"))
            self._template.render(instruction="", query="", documents=[""])
        except (OSError, TemplateError, UnicodeDecodeError) as error:
            raise CheckpointError(
                f"cannot use {file}: {error}. A listwise reranker is served with a Jinja template "
                "over instruction, query and documents"
            ) from error

    @property
    def fields(self) -> tuple[Field, ...]:
        meaning = "What makes a document relevant; by default nothing beside the query."
        return (
            Field(name="instruction", schema=Text(), meaning=meaning),
            MAX_TOKENS_PER_DOC,
        )

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        groups = (
            [(queries[0], list(documents))]
            if len(queries) == 1
            else [(q, [d]) for q, d in zip(queries, documents, strict=True)]
        )
        prompts = [
            Prompt(
                place="+".join([query.place, *(d.place for d in group[:1])]),
                encode=partial(self._encode, query.text, [d.text for d in group], values),
            )
            for query, group in groups
        ]
        params = params_of(values)
        outputs = await self._service.pool(answer_id, prompts, Task.TOKEN_CLASSIFY, params)
        scores = [float(value) for output in outputs for value in output.values.flatten()]
        return Scores(values=tuple(scores), num_tokens=num_tokens(outputs))

    def _encode(self, query: str, documents: list[str], values: Values) -> TokenizedPrompt:
        tokenizer, limit = self._service.tokenizer, values.get("max_tokens_per_doc")
        if limit is not None:
            documents = [tokenizer.shortened(text, limit) for text in documents]
        text = self._template.render(
            instruction=values.get("instruction", ""), query=query, documents=documents
        )
        found = tokenizer.encode_rendered(text)
        rules = self._service.batcher.engine.rules
        method = rules.routes[Task.TOKEN_CLASSIFY][0].method
        markers = sum(token in method.token_ids for token in found.token_ids)
        if markers != len(documents) + 1:
            raise RequestError(
                f"the prompt holds {markers} markers for {len(documents)} documents and a query: "
                "expected one each. A text spells a marker: take it out"
            )
        return found
