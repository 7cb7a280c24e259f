"""docs/capabilities.md says of every family what the engine says of it at start-up.

Passes wrongly if the document was made from a list that stands beside the engine's own check. Ruled
out by `test_another_refusal_is_another_document`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import capabilities
from engine.errors import ConfigurationError
from harness.cli import main
from harness.systems.capabilities import Capability, markdown

FILE = Path(__file__).resolve().parents[2] / "docs" / "capabilities.md"


def test_the_document_is_what_the_engine_tells(capsys: pytest.CaptureFixture[str]) -> None:
    """`parity axes --markdown > docs/capabilities.md` writes it again."""
    assert main(["axes", "--markdown"]) == 0
    assert FILE.read_text(encoding="utf-8") == capsys.readouterr().out


def test_another_refusal_is_another_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read from the engine's own check, not from a list beside it."""

    def undivided(_model: object, _block: object, count: int) -> None:
        if count > 1:
            raise ConfigurationError("tiny-bert is in one piece")

    before = markdown([Capability.of("engine", "tiny-bert")])
    monkeypatch.setattr(capabilities, "check_divisible", undivided)
    after = markdown([Capability.of("engine", "tiny-bert")])
    row = next(line for line in after.splitlines() if "| tiny-bert |" in line)
    assert row.count("refused") == 1 + next(
        line for line in before.splitlines() if "| tiny-bert |" in line
    ).count("refused")
    assert "the checkpoint is in one piece" in after
    assert "`tp=2` and `graph=fitted`" in before
    assert "`tp=2` and `graph=fitted`" not in after  # tp alone is the reason now
