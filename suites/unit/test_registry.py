"""Axes, relations and checks of other distributions stand beside ours once they are installed.

Passes wrongly if what an entry point loads were taken unseen. Ruled out by
suites/meta/test_suites_can_fail.py: `entry-points-are-not-looked-at`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.judge.own_checks import Check, own
from harness.registry import RegistryError, Table
from suites.unit.judge.pairs import World

ROOT = Path(__file__).resolve().parents[2]
Install = Callable[..., Path]

SOURCE = """
from dataclasses import replace

from harness.axes.base import Axis
from harness.judge.own_checks import Check
from harness.record import Tier
from harness.relations.repeat import REPEAT

REVERSAL = replace(REPEAT, name="reversal")
SMALL = Check(name="small", meaning="nothing is large", wrong=lambda s, o, t: None)
WEATHER = Axis(
    name="weather",
    values=("dry", "wet"),
    baseline="dry",
    tier=Tier.EXACT,
    meaning="what it does outside",
    witness=lambda cell, evidence: None if cell.get("weather", "dry") == "dry" else "no rain",
)
"""
CHECK = """
from harness.judge.own_checks import Check

def _large(subject, outputs, oracle):
    return "an element is above 1e6" if any(abs(o.float64).max() > 1e6 for o in outputs) else None

SMALL = Check(name="small", meaning="nothing is large", wrong=_large)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes a distribution with entry points importable."""

    def make(source: str, name: str = "theirs", **groups: dict[str, str]) -> Path:
        site = tmp_path / name
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = []
        for group, points in groups.items():
            lines.append(f"[pooling_parity.{group}]")
            lines += [f"{point} = {value}" for point, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (site / f"{name}_package.py").write_text(source)
        monkeypatch.syspath_prepend(str(site))
        return site

    return make


def test_an_installed_check_is_found_and_asked(install: Install) -> None:
    install(CHECK, checks={"small": "theirs_package:SMALL"})
    checks = Table("checks", Check, {})
    assert list(checks) == ["small"]
    world = World.of("embed", normalize=False)
    assert own(world.subject, "B", world.base, None, checks) == ""
    big = [*world.base[:-1], type(world.base[0]).of(world.base[-1].data * 1e9)]
    assert own(world.subject, "B", big, None, checks) == ("small, side B: an element is above 1e6")


def test_a_fresh_process_has_what_is_installed_in_its_tables(install: Install) -> None:
    site = install(
        SOURCE,
        relations={"reversal": "theirs_package:REVERSAL"},
        checks={"small": "theirs_package:SMALL"},
        axes={"weather": "theirs_package:WEATHER"},
    )
    code = (
        "from harness.relations import RELATIONS\n"
        "from harness.judge.own_checks import CHECKS\n"
        "from harness.axes import ALL_AXES, AXES, Cell, covering, lattice, select\n"
        "print(set(RELATIONS) - set(RELATIONS.ours), set(CHECKS))\n"
        "print(set(ALL_AXES) - set(ALL_AXES.ours), set(AXES) & {'weather'}, len(lattice()))\n"
        "print(Cell.parse('weather=wet')['weather'], len(Cell.parse('weather=dry')))\n"
        "print(len(covering(select(['compile', 'weather']), 2)))\n"
        "print(ALL_AXES['weather'].witnessed(Cell.parse('weather=wet'), {}))"
    )
    path = os.pathsep.join((str(ROOT), str(site)))
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines() == [
        "{'reversal'} {'small'}",
        "{'weather'} set() 16",
        "wet 4",
        "4",
        "weather=wet did not take effect: no rain",
    ]


@pytest.mark.parametrize(
    ("point", "value", "told"),
    [
        ("small", "theirs_package:NOWHERE", "does not load: AttributeError"),
        ("small", "nowhere_at_all:SMALL", "does not load: ModuleNotFoundError"),
        ("small", "theirs_package:_large", "is a function, expected a Check"),
        ("tiny", "theirs_package:SMALL", "calls itself 'small'; give both the same name"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_named(
    install: Install, point: str, value: str, told: str
) -> None:
    install(CHECK, checks={point: value})
    with pytest.raises(RegistryError, match="of theirs") as raised:
        list(Table("checks", Check, {}))
    assert told in str(raised.value)


def test_a_name_is_given_once(install: Install) -> None:
    install(CHECK, checks={"small": "theirs_package:SMALL"})
    ours = Check(name="small", meaning="ours", wrong=lambda subject, outputs, oracle: None)
    with pytest.raises(RegistryError, match="pooling-parity itself has a Check of that name"):
        list(Table("checks", Check, {"small": ours}))
    install(CHECK, name="others", checks={"small": "others_package:SMALL"})
    with pytest.raises(RegistryError, match="another distribution has a Check of that name"):
        list(Table("checks", Check, {}))


def test_a_broken_distribution_is_a_message_of_the_command(install: Install) -> None:
    site = install(CHECK, relations={"small": "theirs_package:SMALL"})
    told = subprocess.run(
        [sys.executable, "-m", "harness", "axes"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(site)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
    assert "'small' of theirs (theirs_package:SMALL) is a Check, expected a Relation" in told.stderr
