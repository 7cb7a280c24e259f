"""Nothing passes vacuously (law 1), through the campaign's own executor and judge.

Each system here would agree with itself perfectly; none may come out as PASS where it lies.

Passes wrongly if nothing ever passed, or a switch was believed to have acted because it was asked
for. Ruled out by `test_an_honest_system_passes_everywhere` and suites/meta/test_suites_can_fail.py:
`switches-vouch-for-themselves`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.axes import AXES, edges, lattice
from harness.checkpoints.catalogue import path_of
from harness.judge.output import Output
from harness.oracle.oracle import Oracle
from harness.record import Outcome, PairRecord, exit_code
from harness.systems.engine import EngineSystem
from suites.figures import show
from suites.meta import blind
from suites.meta.judged import CASES, LENGTHS, Changed, Judged, Liar, engine_system, judged

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

RECOMPILING = "suites.meta.recompiling:every_layer"


@pytest.fixture(scope="module")
def system() -> Iterator[EngineSystem]:
    honest = engine_system(path_of("tiny-qwen3"))
    yield honest
    honest.close()


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(path_of("tiny-qwen3"))


def outcomes(pairs: list[PairRecord]) -> Counter[str]:
    return Counter(str(pair.outcome) for pair in pairs)


def reasons(pairs: list[PairRecord]) -> str:
    """One example of every outcome, for the message of a failing test."""
    first = {pair.outcome: pair for pair in reversed(pairs)}
    return "\n".join(
        f"{o}: {dict(p.cell_a)} {dict(p.cell_b)}: {p.reason}" for o, p in first.items()
    )


def test_an_honest_system_passes_everywhere(
    system: EngineSystem, oracle: Oracle, tmp_path: Path
) -> None:
    """Without this, every other test here could be green because nothing ever passes."""
    found = judged(system, oracle, tmp_path)
    cells = lattice()
    # 15 cells and the oracle against the baseline, and every edge, for each case.
    assert len(found.pairs) == len(CASES) * (len(cells) - 1 + 1 + len(edges(cells)))
    assert outcomes(found.pairs) == {Outcome.PASS: len(found.pairs)}, reasons(found.pairs)
    assert all(pair.num_compared > 0 for pair in found.pairs)
    assert not any(power.blind for power in found.powers)
    assert len(found.powers) == len(CASES)


LIES = [(axis.name, value) for axis in AXES.values() for value in axis.values]


@pytest.mark.parametrize(("axis", "value"), LIES)
def test_a_liar_about_an_axis_never_passes_on_it(
    system: EngineSystem, oracle: Oracle, tmp_path: Path, axis: str, value: str
) -> None:
    """It runs `value` whatever it is asked, so a pair that claims the axis shows nothing."""
    found = judged(Liar(system, axis, value), oracle, tmp_path)
    claiming = found.claiming(axis)
    other = [pair for pair in found.pairs if axis not in pair.axes]
    show(
        f"always {axis}={value}",
        ("pairs", *Outcome),
        [
            (name, *(outcomes(pairs)[o] for o in Outcome))
            for name, pairs in (("claiming the axis", claiming), ("others", other))
        ],
    )
    # Half of the 15 cells against the baseline and 8 edges differ in it.
    assert len(claiming) == len(CASES) * (8 + 8)
    assert set(outcomes(claiming)) == {Outcome.VACUOUS}, reasons(claiming)
    assert exit_code(outcomes(claiming)) == 3


@pytest.mark.parametrize(
    "empty",
    [
        lambda outputs: (),
        lambda outputs: tuple(Output.of(np.zeros((0,), np.float32)) for _ in outputs),
        lambda outputs: tuple(Output.of(o.data[..., :0]) for o in outputs),
    ],
    ids=["no output", "outputs without elements", "rows without columns"],
)
def test_comparing_nothing_is_not_a_pass(
    system: EngineSystem, oracle: Oracle, tmp_path: Path, empty: object
) -> None:
    found = judged(Changed(system, empty), oracle, tmp_path)  # type: ignore[arg-type]
    assert found.pairs
    assert set(outcomes(found.pairs)) == {Outcome.VACUOUS}, reasons(found.pairs)
    assert exit_code(outcomes(found.pairs)) == 3


def test_past_the_recompile_limit_is_an_error_not_eager(oracle: Oracle, tmp_path: Path) -> None:
    forced = engine_system(path_of("tiny-qwen3"))
    try:
        with torch._dynamo.config.patch(recompile_limit=1):
            forced.plant(RECOMPILING)
            found = judged(forced, oracle, tmp_path, cases=CASES[:1])
    finally:
        forced.close()
    compiled = [e for e in found.executions if e.cell.get("compile") == "compiled"]
    eager = [e for e in found.executions if e.cell.get("compile") == "eager"]
    assert len(compiled) == 8
    assert not any(e.error for e in eager), [e.error for e in eager]
    for execution in compiled:
        assert "FailOnRecompileLimitHit" in execution.error, execution.error
        assert not execution.outputs
    touched, untouched = _split(found)
    assert set(outcomes(touched)) == {Outcome.ERROR}, reasons(touched)
    assert set(outcomes(untouched)) == {Outcome.PASS}, reasons(untouched)
    assert exit_code(outcomes(found.pairs)) == 2


def _split(found: Judged) -> tuple[list[PairRecord], list[PairRecord]]:
    """(pairs with a compiled side, pairs of eager cells)."""
    touched = [
        p for p in found.pairs if "compiled" in (p.cell_a.get("compile"), p.cell_b.get("compile"))
    ]
    return touched, [p for p in found.pairs if p not in touched]


def test_a_blind_checkpoint_never_passes(tmp_path: Path) -> None:
    folder = blind.write(_made(tmp_path / "blind"))
    # Not compiled: a blind model is blind in eager, and a compiler costs seconds.
    system, axes = engine_system(folder), ("chunk", "async", "pp")
    try:
        run = system.open(AXES_BASELINE, {}).run(CASES[0], system.encode(CASES[0]))
        rows = np.stack([output.float64 for output in run.outputs])
        cosines = [float(a @ b) for a, b in itertools.combinations(rows, 2)]
        assert len(rows) == len(LENGTHS)
        assert min(cosines) > 0.99999
        found = judged(system, Oracle(folder), tmp_path, axes=axes)
    finally:
        system.close()
    show(
        "a blind checkpoint",
        ("lowest cosine of two prompts", *Outcome),
        [(f"1 - {1 - min(cosines):.2g}", *(outcomes(found.pairs)[o] for o in Outcome))],
    )
    assert all(power.blind for power in found.powers)
    assert len(found.powers) == len(CASES)
    assert set(outcomes(found.pairs)) == {Outcome.VACUOUS}, reasons(found.pairs)
    assert all("blind" in pair.reason for pair in found.pairs)
    assert exit_code(outcomes(found.pairs)) == 3


AXES_BASELINE = {axis.name: axis.baseline for axis in AXES.values()}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
