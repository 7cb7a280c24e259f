"""Other projects' rules on the outputs we judged: what they let through and what they flag.

Passes wrongly if every pair of a planted run counted as changed, also where the fault did nothing.
Ruled out by suites/meta/test_suites_can_fail.py: `pairs-of-a-planted-run-all-count-as-changed`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.campaign.rivalry import OURS, Rivalry, rivalry
from harness.cli import main
from harness.judge.output import Output, OutputKind
from harness.judge.rivals import RIVALS, accepts
from harness.record import RecordError
from suites.unit.attribution.toy import Situation, ToySystem
from suites.unit.campaign.recorded import record

VECTOR = np.linspace(1, 2, 8, dtype=np.float32)


def accepted(b: np.ndarray, a: np.ndarray = VECTOR, kind: str = "embedding") -> set[str]:
    """Names of the rules that call the two equal."""
    sides = ([Output.of(a)], [Output.of(b)])
    return {r.name for r in RIVALS if accepts(r, OutputKind(kind), *sides)}


def test_rules_say_what_their_projects_would() -> None:
    everyone = {rival.name for rival in RIVALS}
    assert accepted(VECTOR) == everyone
    cosines = {"cosine 1e-2", "cosine 1e-3", "cosine 1e-5"}
    assert accepted(VECTOR * np.float32(3)) == cosines, "cosine does not see a scale"
    assert accepted(np.nextafter(VECTOR, np.float32(9))) == everyone - {"bitwise"}
    turned = VECTOR + np.float32(0.1) * np.array([1, -1] * 4, dtype=np.float32)
    assert accepted(turned) == {"cosine 1e-2"}
    assert accepted(VECTOR * np.float32(np.nan)) == set()
    assert accepted(VECTOR[:7]) == set()
    assert accepted(VECTOR.astype(np.float64)) == set()
    score = np.array([0.5], dtype=np.float32)
    assert accepted(score * np.float32(1.004), score, "score") == {"cosine 1e-2"}


def slightly_off(situation: Situation) -> float:
    return 2e-4 * situation.on("compile=compiled", "chunk=chunked")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home") / "runs"
    record(folder / "clean", ToySystem())
    record(folder / "planted", ToySystem(broken=slightly_off), plants=("small-error",))
    return folder


def test_false_alarms_come_from_clean_runs_and_kills_from_what_a_fault_changed(
    runs: Path,
) -> None:
    (found,) = rivalry([runs / "clean", runs / "planted"])
    assert found.dtype == "float32"
    assert found.legitimate > found.changed > 0
    assert found.faults == {"small-error"}
    ours, bitwise = found.rules[OURS], found.rules["bitwise"]
    assert (ours.false_alarms, ours.kills) == (0, found.changed)
    assert bitwise.kills == found.changed
    assert found.rules["cosine 1e-2"].kills == 0
    assert found.rules["cosine 1e-2"].faults == set()
    assert not [name for name in found.dominating if name != "bitwise"]


def test_a_planted_run_needs_a_clean_one_beside_it(runs: Path) -> None:
    with pytest.raises(RecordError, match="no clean run of profile smoke, seed 3"):
        rivalry([runs / "planted"])


@pytest.mark.parametrize(
    ("false_alarms", "kills", "dominates"),
    [(1, 5, False), (1, 6, True), (0, 5, True), (0, 4, False), (2, 9, False)],
)
def test_a_rival_dominates_when_it_is_nowhere_worse_and_somewhere_better(
    *, false_alarms: int, kills: int, dominates: bool
) -> None:
    found = Rivalry(dtype="float32")
    for name, tally in found.rules.items():
        tally.false_alarms, tally.kills = (1, 5) if name == OURS else (3, 0)
    tally = found.rules["bitwise"]
    tally.false_alarms, tally.kills = false_alarms, kills
    assert found.dominating == (("bitwise",) if dominates else ())


def test_the_command_writes_the_table(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARITY_HOME", str(runs.parent))
    page = tmp_path / "rivals.md"
    code = main(["rivals", "clean", "planted", "--out", str(page)])
    told = capsys.readouterr().out
    assert code in (0, 1)
    assert told.splitlines()[0] in page.read_text()
    assert "| float32 | this judge |" in page.read_text()
    assert "parity run --profile smoke --seed 3" in page.read_text()


def test_a_clean_run_alone_shows_nothing(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARITY_HOME", str(runs.parent))
    assert main(["rivals", "clean"]) == 3
    assert "Nothing is shown for float32" in capsys.readouterr().out
