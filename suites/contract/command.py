"""The command line run in this process, and what a user may never see of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one command said. `told` is both streams with line breaks made spaces."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        return " ".join((self.out + self.err).split())


def only_run(home: Path) -> Path:
    """The folder of the one run in a PARITY_HOME."""
    (folder,) = (home / "runs").iterdir()
    return folder


def parity(capture: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    """Run `parity ARGUMENTS`; fails the test when a traceback is shown.

    `capture` is `capfd` where worker processes may speak, else `capsys`.
    """
    capture.readouterr()
    code = main([str(argument) for argument in arguments])
    out, err = capture.readouterr()
    assert "Traceback" not in out + err, out + err
    return Answer(code=code, out=out, err=err)
