"""`parity replay`: run a finding's case again."""

from __future__ import annotations

import typer


def replay() -> None:
    raise typer.Exit(2)
