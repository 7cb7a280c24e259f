"""Any server with an OpenAI-, vLLM-, Cohere- or Jina-shaped interface as a system under test.

A server runs as it was started, so only the baseline cell is open; to see what a switch of the
server does, compare two servers with `parity run --baseline A.toml --candidate B.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import httpx

from harness.axes import Plan
from harness.case import Case, Prompt
from harness.judge.output import Output
from harness.systems import wire
from harness.systems.base import Assignment, Encoded, Session, SystemFailed, SystemRun
from harness.systems.base import SystemUnavailable as Unavailable
from harness.systems.connection import Address, Connection
from harness.systems.plain import PlainSystem

OWN_OPTIONS = ("dialect", "model")
_AS_STARTED = "a server runs as it was started; compare two with --baseline and --candidate"


def http(assignment: Assignment) -> HttpServer:
    """Factory. Options: `url`, `dialect`, `model` (as the server calls it) and those of Address."""
    given = dict(assignment.options)
    known = [*OWN_OPTIONS, *(f.name for f in fields(Address))]
    unknown = sorted(set(given) - set(known))
    if unknown or "url" not in given:
        raise Unavailable(
            f"http needs url (--url, or --set url=http://HOST:PORT) and takes {', '.join(known)}; "
            f"got {sorted(given)}"
        )
    spoken = wire.dialect(given.pop("dialect", "parity"))
    model = given.pop("model", None) or assignment.checkpoint.name
    return HttpServer(assignment, Address(**given), spoken=spoken, model=model)


class HttpServer(PlainSystem):
    """Owns: the connection to one server."""

    why_not: Mapping[str, str] = dict.fromkeys(("compile", "chunk", "async", "pp"), _AS_STARTED)

    def __init__(
        self,
        assignment: Assignment,
        address: Address,
        *,
        spoken: wire.Dialect,
        model: str,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__(assignment)
        self._dialect, self._model, self._address = spoken, model, address
        more: dict[str, Any] = {} if sleep is None else {"sleep": sleep}
        self._connection = Connection(address, transport=transport, **more)

    @property
    def tasks(self) -> tuple[str, ...]:
        reranks = self.assignment.checkpoint.reranker is not None
        return tuple(t for t in self._dialect.tasks if reranks or t not in ("score", "classify"))

    def about(self) -> Mapping[str, str]:
        return {"server": self._address.url, "model": self._model}

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        super().open(cell, settings)  # refuses what a server cannot be asked for
        return _HttpSession(self)

    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: object,
    ) -> Sequence[Output]:
        del cell, account  # what a server does inside, it does not tell
        if case.task not in self.tasks:
            raise SystemFailed(
                f"task={case.task!r} is not offered by {self._address.url}; "
                f"valid: {', '.join(self.tasks)}"
            )
        as_given = tuple(prompts) == self.encode(case)
        if case.task == "score" and as_given and all(p.query is not None for p in case.prompts):
            return self._pairs(case, prompts)
        if any(any(p.type_ids) for p in prompts):
            raise SystemFailed("type ids cannot be sent: a server makes them of a pair of texts")
        texts = [p.text for p in case.prompts]
        whole = as_given and all(text is not None for text in texts)
        if not whole and not self._dialect.tokens:
            raise SystemFailed("this dialect takes texts only, and the case has token ids")
        given = texts if whole else [list(p.token_ids) for p in prompts]
        return self._inputs(case, given, prompts)

    def _inputs(
        self, case: Case, given: Sequence[object], prompts: Sequence[Encoded]
    ) -> Sequence[Output]:
        body = {"model": self._model, "input": list(given)}
        body |= wire.parameters(case, self._dialect)
        match case.task:
            case "embed":
                path, member = "/v1/embeddings", "embedding"
                body["encoding_format"] = "float"
            case "token_embed":
                path, member = "/pooling", "data"
                body["task"] = case.task
            case _:
                path, member = "/classify", "probs"
                if case.activation is False and self._dialect.activation == "activation":
                    member = "logits"
        answer = self._connection.ask(path, body)
        return self._outputs(answer, prompts, member=member, listing="data")

    def _pairs(self, case: Case, prompts: Sequence[Encoded]) -> Sequence[Output]:
        """One request for each run of prompts with the same query, as the interfaces want it."""
        found: list[Output] = []
        for query, start, group in _by_query(case.prompts):
            documents = [prompt.document for prompt in group]
            part = prompts[start : start + len(group)]
            body: dict[str, Any] = {"model": self._model}
            body |= wire.parameters(case, self._dialect)
            if self._dialect.score == "rerank":
                body |= {"query": query, "documents": documents, "top_n": len(documents)}
                answer = self._connection.ask("/rerank", body)
                found += self._outputs(answer, part, member="relevance_score", listing="results")
            else:
                body |= {"text_1": query, "text_2": documents}
                answer = self._connection.ask("/score", body)
                found += self._outputs(answer, part, member="score", listing="data")
        return found

    def _outputs(
        self, answer: Mapping[str, Any], prompts: Sequence[Encoded], *, member: str, listing: str
    ) -> list[Output]:
        values = wire.rows(answer, len(prompts), member=member, listing=listing)
        lengths = [len(prompt.token_ids) for prompt in prompts]
        wire.check_usage(answer, sum(lengths), lengths)
        return [
            wire.array(value, f"{listing}[index {index}].{member}")
            for index, value in enumerate(values)
        ]

    def close(self) -> None:
        self._connection.close()


class _HttpSession:
    """A server that is already running."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        del plan, taps
        outputs = tuple(self._server.answer(case, prompts, cell={}, account=None))
        # No ranks and no chunks: nothing that a server would have to attest can be claimed of it.
        return SystemRun(outputs=outputs, plan=(), witness={"flags": dict(self._server.about())})


def _by_query(prompts: Sequence[Prompt]) -> list[tuple[str, int, list[Prompt]]]:
    groups: list[tuple[str, int, list[Prompt]]] = []
    for index, prompt in enumerate(prompts):
        if groups and groups[-1][0] == prompt.query:
            groups[-1][2].append(prompt)
        else:
            groups.append((prompt.query or "", index, [prompt]))
    return groups
