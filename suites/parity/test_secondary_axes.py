"""The secondary axes on the real engine, by the campaign's own executor and judge; and liars.

Passes wrongly if a switch counted as acting because it was asked for. Ruled out by
`test_a_liar_never_passes_on_the_axis`, `test_one_name_for_two_attention_functions_is_seen` and
`test_two_tensor_ranks_that_do_not_sum_are_not_two`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from engine.attention import BACKENDS, backend
from engine.collectives import InlineAllReduce
from harness.axes import ALL_AXES, differing
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import path_of
from harness.oracle.oracle import Oracle
from harness.record import Outcome, Tier
from harness.systems.base import Session
from harness.systems.conformance import Conformance, Standing, exit_code
from harness.systems.engine import EngineOptions, EngineSystem
from suites.figures import show
from suites.meta.judged import CHUNK, MAX_LENGTH, Liar, judged
from suites.parity.memory import prompt

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

LENGTHS = (70, 52, 44, 60, 35)
CASE = Case(
    task="embed",
    prompts=tuple(Prompt(tokens=prompt(n, i, shared=34)) for i, n in enumerate(LENGTHS)),
)
TOKENS = Case(task="token_embed", prompts=CASE.prompts[:3], normalize=False)
VARIED = {
    "prefix_cache": (("chunk", "prefix_cache"), "on", {Tier.REORDERED}),
    "kv_pool": (("chunk", "kv_pool"), "small", {Tier.REORDERED}),
    "block_size": (("chunk", "block_size"), "1", {Tier.EXACT}),
    "buffers": (("async", "buffers"), "ring", {Tier.EXACT}),
    "tp": (("pp", "tp"), "2", {Tier.REORDERED}),
    "graph": (("compile", "graph"), "fitted", {Tier.EXACT, Tier.KERNEL}),
    "attention": (("chunk", "attention"), "naive", {Tier.KERNEL}),
}
"""axis -> (what is varied so that it can act, a value, the tiers it is held to)"""


@pytest.fixture(scope="module")
def system() -> Iterator[EngineSystem]:
    found = EngineSystem(
        EngineOptions(
            model=path_of("tiny-qwen3"),
            chunk=CHUNK,
            max_num_seqs=2,
            max_model_len=MAX_LENGTH,
            long_prefill_token_threshold=CHUNK // 2,
        )
    )
    yield found
    found.close()


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(path_of("tiny-qwen3"))


class CompiledLiar(Liar):
    """Lies in compiled cells: without compiled callables there is nothing to replay."""

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        if cell["compile"] == "eager":
            return self.inner.open(cell, settings)
        return super().open(cell, settings)


def cases_of(axis: str) -> Sequence[Case]:
    return (CASE,) if axis == "prefix_cache" else (CASE, TOKENS)


@pytest.mark.parametrize("axis", VARIED)
def test_an_honest_engine_passes_on_every_pair_it_can_be_told_apart_by(
    system: EngineSystem, oracle: Oracle, tmp_path: Path, axis: str
) -> None:
    axes, _, tiers = VARIED[axis]
    found = judged(system, oracle, tmp_path, cases=cases_of(axis), axes=axes)
    outcomes = Counter(str(pair.outcome) for pair in found.pairs)
    show(axis, ("pairs", *Outcome), [(len(found.pairs), *(outcomes[o] for o in Outcome))])
    alone = [p for p in found.pairs if p.axes == (axis,)]
    assert {p.outcome for p in found.pairs} <= {Outcome.PASS, Outcome.INAPPLICABLE}, [
        (p.axes, p.outcome, p.reason) for p in found.pairs if p.outcome is not Outcome.PASS
    ]
    passed = [p for p in alone if p.outcome is Outcome.PASS]
    assert passed
    assert {p.tier for p in passed} == tiers
    if axis == "kv_pool":
        chunked = [e for e in found.executions if e.cell.get("chunk") == "chunked"]
        small = [e for e in chunked if e.cell.get("kv_pool") == "small"]
        assert any(e.witness["memory"]["preemptions"] for e in small)


@pytest.mark.parametrize("axis", VARIED)
@pytest.mark.parametrize("lie", ["baseline", "other"])
def test_a_liar_never_passes_on_the_axis(
    system: EngineSystem, oracle: Oracle, tmp_path: Path, axis: str, lie: str
) -> None:
    axes, other, _ = VARIED[axis]
    value = other if lie == "other" else ALL_AXES[axis].baseline
    liar = CompiledLiar(system, axis, value) if axis == "graph" else Liar(system, axis, value)
    found = judged(liar, oracle, tmp_path, cases=cases_of(axis)[:1], axes=axes)
    claiming = [p for p in found.pairs if axis in differing(p.cell_a, p.cell_b)]
    # With one step in flight a ring has one buffer, as a fenced one has; eager cells do not lie.
    if axis in ("buffers", "graph"):
        claiming = [p for p in claiming if p.axes == (axis,)]
    outcomes = Counter(str(pair.outcome) for pair in claiming)
    assert claiming
    assert not outcomes[Outcome.PASS], [p.reason for p in claiming]
    assert not outcomes[Outcome.FAIL], [p.reason for p in claiming]
    # Who never reads the cache leaves a plan without hits, so nothing could act: never a PASS.
    if (axis, lie) != ("prefix_cache", "baseline"):
        assert outcomes[Outcome.VACUOUS], outcomes


def test_recordings_behind_a_compiled_cell_are_an_undeclared_difference(
    system: EngineSystem, oracle: Oracle, tmp_path: Path
) -> None:
    """The cell names no recording, one side replays some: another pair than the one declared."""
    liar = CompiledLiar(system, "graph", "coarse")
    found = judged(liar, oracle, tmp_path, cases=(CASE,), axes=("compile",))
    claiming = found.claiming("compile")
    assert {pair.outcome for pair in claiming} == {Outcome.ERROR}
    assert all("the sides also differ in graph: on side B" in pair.reason for pair in claiming)


def test_one_name_for_two_attention_functions_is_seen(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran is told by the function that was called, not by the name that was asked for."""
    monkeypatch.setitem(BACKENDS, "naive", BACKENDS["sdpa"])
    backend.cache_clear()
    lying = EngineSystem(
        EngineOptions(model=path_of("tiny-qwen3"), chunk=64, max_num_seqs=2, max_model_len=128)
    )
    try:
        found = judged(lying, oracle, tmp_path, cases=(CASE,), axes=("attention",))
    finally:
        lying.close()
        backend.cache_clear()
    claiming = found.claiming("attention")
    assert {pair.outcome for pair in claiming} == {Outcome.VACUOUS}
    assert all("expected naive only" in pair.reason for pair in claiming)


def test_two_tensor_ranks_that_do_not_sum_are_not_two(
    system: EngineSystem, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each goes on with its own summand: both ranks work, and no sum had two summands."""

    def own(self: InlineAllReduce, stream: object, turn: int, rows: int) -> object:
        del stream
        mine = self._buffers[turn]
        return lambda: [mine.tensor[:rows]], (mine,)

    monkeypatch.setattr(InlineAllReduce, "_collect", own)
    found = judged(system, oracle, tmp_path, cases=(CASE,), axes=("tp",))
    claiming = found.claiming("tp")
    assert {pair.outcome for pair in claiming} == {Outcome.VACUOUS}
    assert all("each sum had 1 summands, expected 2" in pair.reason for pair in claiming)


def test_our_engine_conforms_in_every_switch() -> None:
    """Each value acts, or is refused for a reason: here Triton, which has no code for a CPU."""
    system = EngineSystem(
        EngineOptions(model=path_of("tiny-qwen3"), chunk=CHUNK, max_num_seqs=2, max_model_len=192)
    )
    found = Conformance(
        system=system, checkpoint="tiny-qwen3", vocabulary=1024, chunk=CHUNK, max_model_len=192
    ).run()
    checks = {check.name: check for check in found}
    for axis in ALL_AXES.values():
        for value in axis.values:
            check = checks[f"{axis.name}={value}"]
            refused = Standing.REFUSED if value == "triton" else Standing.HOLDS
            assert check.standing is refused, check
    assert exit_code(list(checks.values())) == 0
