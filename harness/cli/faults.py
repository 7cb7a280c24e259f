"""`parity faults`: the kill matrix, this product's own test result."""

from __future__ import annotations

import typer


def faults() -> None:
    raise typer.Exit(2)
