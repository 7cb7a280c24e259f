"""`parity serve` under load: no row is another's, none is lost unsaid, and a wrong one is seen.

Passes wrongly if rows were not compared, or within a bound that a wrong one meets. Ruled out by
`test_a_wrong_row_under_load_is_seen`.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import httpx
import pytest

from harness.record import Tier
from suites.contract.campaigns import PLUGINS
from suites.contract.load import MAX_LEN, Heard, load, questions
from suites.contract.misbehaving import EVERY
from suites.contract.sessions import TEST_TIMEOUT_S, wait_for
from suites.contract.test_server import LIVENESS_S, Served, kill_a_rank, served
from suites.figures import show

pytestmark = [pytest.mark.xdist_group("tiny-qwen3"), pytest.mark.timeout(TEST_TIMEOUT_S)]

CONNECTIONS, SECONDS = 64, 60
FEW, EACH = 8, 4
"""Connections of a small load, and what each asks."""
SMALL_QUEUE = ("--max-queued-prompts", "96")
"""Prompts; 64 connections of a few each do not fit."""
LONG = ("--max-model-len", str(MAX_LEN))
CHUNKED = (*LONG, "--chunked", "--async", "--max-num-batched-tokens", "64")
WAYS = {Tier.EXACT: ("--batch-invariant", *CHUNKED), Tier.REORDERED: CHUNKED}


def counter(server: Served, name: str) -> float:
    metrics = httpx.get(f"{server.url}/metrics", timeout=LIVENESS_S).text
    found = re.search(rf"^parity_{name} (\S+)", metrics, re.MULTILINE)
    assert found is not None, metrics
    return float(found.group(1))


@pytest.mark.nightly
@pytest.mark.parametrize("tier", WAYS, ids=str)
def test_a_minute_of_load_gets_no_wrong_row(tmp_path: Path, tier: Tier) -> None:
    asked, heard = questions(batch_invariant=tier is Tier.EXACT), Heard()
    with served(tmp_path, *WAYS[tier], *SMALL_QUEUE) as server:
        end = time.monotonic() + SECONDS
        load(
            server.url,
            asked,
            heard,
            connections=CONNECTIONS,
            more=lambda _: time.monotonic() < end,
        )
        tokens, steps = counter(server, "step_tokens_sum"), counter(server, "step_tokens_count")
        assert counter(server, "hazards_total") == 0
    wrong = heard.wrong_rows(asked, tier)
    rows = sum(len(heard.answers[key]) * times for key, times in heard.times.items())
    show(
        f"{CONNECTIONS} connections for {SECONDS} s, rows held to the offline engine's "
        f"({'bitwise' if tier is Tier.EXACT else tier})",
        ("requests", "rows", "wrong rows", "429, asked again", "p50, ms", "p99, ms", "tokens/step"),
        [
            (
                sum(heard.statuses.values()),
                rows,
                len(wrong),
                heard.statuses[httpx.codes.TOO_MANY_REQUESTS],
                heard.percentile(50),
                heard.percentile(99),
                tokens / steps,
            )
        ],
    )
    assert not wrong, wrong[:10]
    assert not heard.failures, heard.failures[:10]
    assert set(heard.statuses) == {httpx.codes.OK, httpx.codes.TOO_MANY_REQUESTS}
    assert len({place for place, _ in heard.answers}) == len(asked), "a question was never asked"


@pytest.mark.parametrize(
    ("tier", "plugin"),
    [
        pytest.param(Tier.EXACT, "nudge_a_number", marks=pytest.mark.nightly),
        (Tier.REORDERED, "shift_a_number"),
    ],
    ids=str,
)
def test_a_wrong_row_under_load_is_seen(tmp_path: Path, tier: Tier, plugin: str) -> None:
    asked, heard = questions(batch_invariant=tier is Tier.EXACT), Heard()
    with served(tmp_path, *WAYS[tier], "--plugin", f"{PLUGINS}:{plugin}") as server:
        load(server.url, asked, heard, connections=FEW, more=lambda turn: turn < EACH)
    rows = sum(len(heard.answers[key]) * times for key, times in heard.times.items())
    assert len(heard.wrong_rows(asked, tier)) == rows // EVERY > 0
    assert not heard.failures


@pytest.mark.nightly
def test_ranks_killed_under_load_cost_no_row_and_then_the_server(tmp_path: Path) -> None:
    asked, heard = questions(batch_invariant=True), Heard()
    options = (*LONG, "--batch-invariant", "--pp", "2", "--executor", "processes")
    with served(tmp_path, *options) as server:
        asking = threading.Thread(
            target=load,
            args=(server.url, asked, heard),
            kwargs={"connections": FEW, "more": lambda _: True},
        )
        asking.start()
        try:
            answered(server, heard, EACH * FEW)
            kill_a_rank(server)
            wait_for(lambda: heard.statuses[503] > 0, server.process, server.log)
            # The engine that took its place answers as the first did, also who was refused.
            answered(server, heard, EACH * FEW)
            assert counter(server, "engine_rebuilds_total") == 1
            kill_a_rank(server)
            assert server.end() == 1, server.log.read_text()
        finally:
            server.process.kill()
            asking.join(LIVENESS_S)
    assert not asking.is_alive()
    assert not heard.wrong_rows(asked, Tier.EXACT)
    assert set(heard.statuses) == {200, 503}
    assert len(heard.failures) == FEW, "each connection is told that the server is gone"


def answered(server: Served, heard: Heard, more: int) -> None:
    """Until so many more requests are answered."""
    until = heard.statuses[200] + more
    wait_for(lambda: heard.statuses[200] >= until, server.process, server.log)
