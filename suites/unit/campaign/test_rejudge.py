"""A recorded run is judged again under other tolerances, and says which would have passed it.

Passes wrongly if any bound under which all pairs pass was called the least. Ruled out by
suites/meta/test_suites_can_fail.py: `the-least-bound-is-not-the-least`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.campaign.rejudge import rejudge
from harness.cli import main
from harness.judge import BucketKey, ToleranceError
from harness.judge.rules import Rules, read_rules
from harness.record import Outcome, Tier
from reports.load import load_run
from suites.unit.attribution.toy import Situation, ToySystem
from suites.unit.campaign.recorded import record


def compiled_is_off(situation: Situation) -> float:
    return 1e-3 * situation.on("compile=compiled")


def pp_is_off(situation: Situation) -> float:
    return 1e-3 * situation.on("pp=2")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a clean run, one whose compiled cells are off and one whose PP=2 cells are."""
    home = tmp_path_factory.mktemp("home")
    record(home / "runs" / "clean", ToySystem())
    record(home / "runs" / "compiled", ToySystem(broken=compiled_is_off))
    record(home / "runs" / "stages", ToySystem(broken=pp_is_off))
    return home / "runs"


@pytest.mark.parametrize("name", ["clean", "compiled", "stages"])
def test_the_same_rules_give_the_same_verdicts(runs: Path, name: str) -> None:
    found = rejudge(runs / name, Rules())
    assert found.before == {pair.pair_id: pair for pair in found.pairs}
    assert not found.changed


def test_the_least_bound_passes_and_one_below_it_does_not(runs: Path) -> None:
    found = rejudge(runs / "compiled", Rules())
    assert found.counts[Outcome.FAIL]
    assert not found.beyond
    over = [need for need in found.needs if need.needed > need.in_force]
    assert {need.rule for need in over} == {"kernel"}

    def judged(factor: float) -> int:
        rules = Rules()
        for need in over:
            key = BucketKey(need.checkpoint, need.dtype, need.kind, need.bucket)
            rules = rules.with_bound(Tier.KERNEL, key, factor * need.needed)
        return rejudge(runs / "compiled", rules).counts[Outcome.FAIL]

    assert judged(1.0) == 0
    assert judged(0.999) > 0


def test_bits_of_the_exact_tier_fail_at_any_tolerance(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.toml"
    path.write_text('why = "a test"\n[[tolerance]]\nfloor = 1.0\n')
    found = rejudge(runs / "stages", read_rules(path))
    assert found.counts[Outcome.FAIL]
    assert len(found.beyond) == found.counts[Outcome.FAIL]
    assert all(pair.tier is Tier.EXACT for pair in found.beyond)


def test_the_command_writes_beside_the_records_and_never_over_them(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARITY_HOME", str(runs.parent))
    before = {p: p.read_bytes() for p in (runs / "compiled").iterdir() if p.is_file()}
    assert main(["judge", "compiled", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    first = Path(told["verdicts"])
    least = max(n["needed"] for n in told["needs"] if n["rule"] == "kernel")
    path = tmp_path / "own.json"
    rule = {"tier": "kernel", "floor": 1.001 * least}
    path.write_text(json.dumps({"why": "a test", "tolerance": [rule]}))
    assert main(["judge", "compiled", "--tolerance", str(path)]) == 0
    assert "came out differently" in capsys.readouterr().out
    assert {p: p.read_bytes() for p in before} == before
    (second,) = set((runs / "compiled" / "judged").iterdir()) - {first}
    again = load_run(second)
    assert again.end is not None
    assert again.end.exit_code == 0
    assert "own.json; nothing was run" in again.notices[-1]
    assert len(again.pairs) == len(load_run(runs / "compiled").pairs)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[[tolerance]]\nfloor = 1.0", "need `why`"),
        ('why = "w"\nslack = 1', "unknown key slack; valid: why, thresholds, tolerance, cap"),
        ('why = "w"\n[[tolerance]]\ntier = "exact"\nfloor = 1', "tier='exact' is unknown; valid"),
        ('why = "w"\n[[tolerance]]\nkind = "smell"\nfloor = 1', "kind='smell' is unknown; valid"),
        ('why = "w"\n[[tolerance]]\ntier = "kernel"', "changes nothing; give one of floor"),
        ('why = "w"\n[[tolerance]]\nfloor = "wide"', "floor='wide' is not a number"),
        ('why = "w"\n[[tolerance]]\nk = 0.5', "expected k >= 1"),
        ('why = "w"\n[[cap]]\ntier = "kernel"\nfloor = 1', "unknown key tier in an entry"),
        ('why = "w"\nthresholds = ["high"]', "must be a list of numbers"),
        ("why = ", "Invalid value"),
    ],
)
def test_a_mistake_in_own_tolerances_is_named(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(content)
    with pytest.raises(ToleranceError, match=r"own\.toml") as raised:
        read_rules(path)
    assert told in str(raised.value)


def test_a_missing_file_of_tolerances_is_misuse(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARITY_HOME", str(runs.parent))
    assert main(["judge", "clean", "--tolerance", "nowhere.toml"]) == 2
    assert "nowhere.toml" in capsys.readouterr().err
