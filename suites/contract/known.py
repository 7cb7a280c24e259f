"""Known findings, as this suite uses them: the folder of a user, its rules and its gate."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from reports.gate import SCHEMA_FILE
from suites.contract.command import Answer, parity

TODAY = datetime.now(UTC).date()
LAST = TODAY + timedelta(days=30)
GONE = TODAY - timedelta(days=1)
RULES = "version = 1\n\n[limits]  # a comment that stays\nallow_plants = true\n"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
OWNED = ("--owner", "ada", "--link", "https://tracker.example/1", "--expires", LAST.isoformat())
FOUND = "F-tiny-3c9d"
ASKED = (
    "run",
    "--model",
    "tiny-qwen3",
    "--only",
    "chunk,pp",
    "--size",
    "cases=2",
    "--workers",
    "1",
)


def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder of a user's own, and the rules in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARITY_HOME", str(tmp_path / "home"))
    (tmp_path / "parity.toml").write_text(RULES)
    return tmp_path


def gate(capture: pytest.CaptureFixture[str], *run: str) -> tuple[Answer, set[str], dict[str, str]]:
    """What the gate said, the rules that were not met, and the fate of everything known."""
    told = parity(capture, "gate", *run, "--json")
    document = json.loads(told.out)
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    broken = {check["rule"] for check in document["checks"] if not check["passed"]}
    return told, broken, {row["name"]: row["state"] for row in document["known"]}


def entries() -> list[dict[str, object]]:
    found: list[dict[str, object]] = tomllib.loads(Path("parity.toml").read_text()).get("known", [])
    return found
