"""Breaks of `suites/unit/server`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _first_query(pool_apart: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """`pool_apart`, which pairs every document with the first query."""

    async def function(*args: Any, **kwargs: Any) -> Any:
        found = await pool_apart(*args, **kwargs)
        return replace(found, queries=found.queries[:1] * len(found.documents))

    return function


def _left_running(until_disconnect: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """`_until_disconnect`, which leaves the work running when the client has gone."""
    there = until_disconnect.__globals__

    async def function(request: Any, work: Awaitable[Any]) -> Any:
        working = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(there["_disconnected"](request))
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise there["ClientDisconnect"]
        leaving.cancel()
        return working.result()

    return function


def _only_hidden(_: Callable[..., None]) -> Callable[..., None]:
    """`Session.abort`, which drops the answer and lets the request run on."""

    def function(session: Any, request_id: str) -> None:
        advance = session.advance
        session.advance = lambda: [out for out in advance() if out.request_id != request_id]

    return function


def _flags_are_numbers(check: Callable[..., None]) -> Callable[..., None]:
    """`Integer.check`, to which `true` is 1."""

    def function(schema: Any, value: Any, place: Any) -> None:
        check(schema, int(value) if isinstance(value, bool) else value, place)

    return function


BREAKS: Final = (
    Break(
        name="embeddings-lose-bits-on-the-wire",
        suite="suites/unit/server/test_answers.py",
        red="test_embeddings_are_the_engines_bits",
        at="engine.server.embeddings:encoded",
        instead=lambda right: lambda values, how: right(values.bfloat16().float(), how),
    ),
    Break(
        name="cancelled-prompts-run-on",
        suite="suites/unit/server/test_batcher.py",
        red="test_an_aborted_prompt_takes_no_more_steps",
        at="engine.server.batcher:Batcher._abort",
        instead=instead.value(lambda batcher, session: batcher._aborted.clear()),
    ),
    Break(
        name="every-document-meets-the-first-query",
        suite="suites/unit/server/test_bi_encoder.py",
        red="test_pairs_go_together",
        at="engine.server.scoring:pool_apart",
        instead=_first_query,
    ),
    Break(
        name="who-hung-up-is-served-on",
        suite="suites/unit/server/test_connections.py",
        red="test_who_hangs_up_is_aborted_and_nobody_else",
        at="engine.server.web:_until_disconnect",
        instead=_left_running,
    ),
    Break(
        name="one-head-takes-the-engine-down",
        suite="suites/unit/server/test_isolation.py",
        red="test_company_of_a_request_that_goes_wrong",
        at="engine.server.batcher:PoolingFailure",
        instead=instead.value(type("Never", (), {})),
    ),
    Break(
        name="the-document-promises-empty-texts",
        suite="suites/unit/server/test_openapi.py",
        red="test_the_least_text_that_is_promised_is_the_least_that_is_taken",
        at="engine.server.schema:Text.to_json",
        instead=instead.result(lambda found: {k: v for k, v in found.items() if k != "minLength"}),
    ),
    Break(
        name="nan-is-sent-as-base64",
        suite="suites/unit/server/test_refusals.py",
        red="test_what_is_not_finite_is_an_error",
        at="engine.server.service:_require_finite",
        instead=instead.returns(None),
    ),
    Break(
        name="true-is-an-integer",
        suite="suites/unit/server/test_schema.py",
        red="test_what_does_not",
        at="engine.server.schema:Integer.check",
        instead=_flags_are_numbers,
    ),
    Break(
        name="documents-look-for-the-query",
        suite="suites/unit/server/test_scorers.py",
        red="test_late_interaction_scores_are_maxsim",
        at="engine.server.late_interaction:maxsim",
        instead=lambda right: lambda query, document: right(document, query),
    ),
    Break(
        name="an-abort-hides-the-answer-only",
        suite="suites/unit/server/test_session.py",
        red="test_an_abort_leaves_nothing_and_costs_nobody_anything",
        at="engine.session:Session.abort",
        instead=_only_hidden,
    ),
    Break(
        name="prompts-are-always-cut-on-the-right",
        suite="suites/unit/server/test_truncation.py",
        red="test_ids_are_cut_on_the_side_that_is_asked_for",
        at="engine.truncation:Truncation.cut",
        instead=instead.value(lambda truncation, ids: ids[: truncation.max_tokens]),
    ),
)
