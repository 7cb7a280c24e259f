"""A system is found by name, by entry point or by place, or the message says what is wrong.

Passes wrongly if nothing but our own table was ever asked for a name. Ruled out by
suites/meta/test_suites_can_fail.py: `installed-systems-are-not-asked-for`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.systems import table
from harness.systems.base import SystemUnavailable


def test_every_name_has_a_factory() -> None:
    for name in table.SYSTEMS:
        assert callable(table.factory(name)), name


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(SystemUnavailable, match=r"'vlm' is unknown; valid: engine, hf, .*FILE\.py"):
        table.factory("vlm")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def make(assignment):\n    return 'made'\nNAME = 'x'\n")
    assert table.factory(f"{file}:make")(None) == "made"  # type: ignore[arg-type]
    with pytest.raises(SystemUnavailable, match="has no 'other'"):
        table.factory(f"{file}:other")
    with pytest.raises(SystemUnavailable, match="cannot be called"):
        table.factory(f"{file}:NAME")
    with pytest.raises(SystemUnavailable, match="no Python file"):
        table.factory(f"{tmp_path / 'absent.py'}:make")


def test_a_missing_package_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "needy.py"
    file.write_text("import no_such_package_at_all\n")
    with pytest.raises(SystemUnavailable, match="pip install no_such_package_at_all"):
        table.factory(f"{file}:make")


def test_an_installed_package_may_offer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "theirs"

        def load(self) -> object:
            return lambda assignment: "theirs"

    monkeypatch.setattr(table, "entry_points", lambda group: [Point()])
    assert "theirs" in table.names()
    assert table.factory("theirs")(None) == "theirs"  # type: ignore[arg-type]
