"""The adapter template of the documents works exactly as it is shown.

Passes wrongly if the shown commands took any answers from the template, whichever prompt they
belong to. Ruled out by suites/meta/test_suites_can_fail.py: `a-template-turns-its-answers-round`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.app import run_app

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "your-own-engine.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.xdist_group("tiny-qwen3")


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only Python block of the document, as a file in an empty working folder."""
    (code,) = BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))
    (tmp_path / "my_engine.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return str(code)


def test_it_is_about_thirty_lines(template: str) -> None:
    lines = [line for line in template.splitlines() if line.strip()]
    assert len(lines) <= 35


def test_the_shown_commands_pass(template: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^parity (.*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) == 2
    assert run_app(shown[0].split()) == 0, capsys.readouterr().out
    told = capsys.readouterr().out
    assert "refused  pp=2: pp=2: it runs on one device" in told
    assert "BROKEN" not in told
    assert run_app([*shown[1].split(), "--size", "cases=2"]) == 0, capsys.readouterr().out
