"""`batch_invariant`: chunk size and batch company change no bit, on the generated decoder.

The same on SmolLM2 stands in `suites/real/test_smollm2.py`, what it costs in `suites/bench`.

Passes wrongly if nothing came after the products and the attention that start-up probes already.
Ruled out by suites/meta/test_suites_can_fail.py: `the-last-norm-counts-the-steps-rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.engine import RunResult
from engine.models.config import read_model_config
from engine.request import PoolingRequest, Task
from harness.axes import tier_between
from harness.checkpoints.catalogue import path_of
from harness.record import Tier
from suites.figures import show
from suites.parity.fleet import Fleet, Way, differing
from suites.parity.prompts import MIXED, requests

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

CHUNKS = (1, 7, 64, None)
"""Token budgets; None: whole. 65 tokens do not fit 64, and 7 divides no length here but 7."""
MODES = ("eager", "compiled")


class Invariant:
    """Owns: two fleets over the same weights, the mode on and off."""

    def __init__(self) -> None:
        path = path_of("tiny-qwen3")
        self.fleets = {on: Fleet(path, batch_invariant=on) for on in (True, False)}
        vocabulary = read_model_config(path).vocab_size
        self.requests: Sequence[PoolingRequest] = requests(MIXED, vocabulary=vocabulary)
        self._runs: dict[tuple[bool, str, int | None], RunResult] = {}

    def run(self, mode: str, chunk: int | None, *, on: bool = True) -> RunResult:
        key = (on, mode, chunk)
        if key not in self._runs:
            way = Way(mode=mode, chunk=chunk, batch_invariant=on)
            self._runs[key] = self.fleets[on].run(way, self.requests)
        return self._runs[key]


@pytest.fixture(scope="module")
def invariant() -> Invariant:
    return Invariant()


@pytest.mark.parametrize("chunk", CHUNKS[:-1])
@pytest.mark.parametrize("mode", MODES)
def test_chunk_size_changes_no_bit(invariant: Invariant, mode: str, chunk: int) -> None:
    whole, chunked = invariant.run(mode, None), invariant.run(mode, chunk)
    assert whole.witness.max_chunks == 1
    assert chunked.witness.max_chunks == -(-max(n for n, _ in MIXED) // chunk)
    assert (chunked.witness.compiled_calls > 0) == (mode == "compiled")
    assert differing(whole, chunked) == []


@pytest.mark.parametrize("mode", MODES)
def test_company_changes_no_bit(invariant: Invariant, mode: str) -> None:
    together = invariant.run(mode, None)
    for request in invariant.requests:
        way = Way(mode=mode, batch_invariant=True)
        alone = invariant.fleets[True].run(way, [request])
        beside = together.outputs[request.request_id].values
        assert alone.outputs[request.request_id].values.tolist() == beside.tolist()


def test_stages_and_scheduling_change_no_bit_in_chunks_of_seven(invariant: Invariant) -> None:
    for mode in MODES:
        way = Way(
            mode=mode,
            chunk=7,
            stages=2,
            asynchronous=True,
            policy="lag(copy@last)",
            batch_invariant=True,
        )
        run = invariant.fleets[True].run(way, invariant.requests)
        assert not run.witness.hazards
        assert differing(invariant.run(mode, None), run) == []


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_decides_the_tier_of_the_chunk_axis(invariant: Invariant, mode: str) -> None:
    def tier(*, on_a: bool, on_b: bool) -> Tier:
        a, b = invariant.run(mode, None, on=on_a), invariant.run(mode, 7, on=on_b)
        return tier_between(("chunk",), a.witness.to_json(), b.witness.to_json())

    assert tier(on_a=True, on_b=True) is Tier.EXACT
    assert tier(on_a=False, on_b=False) is Tier.REORDERED
    assert tier(on_a=True, on_b=False) is Tier.REORDERED
    assert tier(on_a=False, on_b=True) is Tier.REORDERED


def test_what_chunks_change_with_the_mode_off(invariant: Invariant) -> None:
    """Nothing need differ with the mode off; the figures say whether the mode does any work."""
    rows = []
    for mode in MODES:
        for chunk in CHUNKS[:-1]:
            runs = {
                on: (invariant.run(mode, None, on=on), invariant.run(mode, chunk, on=on))
                for on in (True, False)
            }
            found = {on: differing(*pair) for on, pair in runs.items()}
            assert found[True] == []
            rows.append((mode, chunk, len(found[True]), len(found[False]), len(MIXED)))
    show(
        "requests whose bits a chunk size changes",
        ("mode", "chunk", "batch_invariant on", "off", "of"),
        rows,
    )


def test_requests_cover_every_task() -> None:
    assert {task for _, task in MIXED} >= set(Task) - {Task.EMBED_AND_TOKEN_CLASSIFY}
