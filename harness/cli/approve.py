"""`parity approve`: measurements become the calibration, as a diff that a person reviews."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageError
from harness.cli.folders import run_folder
from harness.judge.calibration import CALIBRATION

if TYPE_CHECKING:
    from harness.judge.calibration import Entry


def approve(
    *,
    source: Annotated[
        str, typer.Argument(help="A proposal of `parity calibrate`, or a run by id or folder")
    ],
    into: Annotated[Path, typer.Option(help="Calibration file to change")] = CALIBRATION,
    dry_run: Annotated[bool, typer.Option(help="Print the diff and write nothing")] = False,
) -> None:
    """Take a proposal into the calibration file and print what changes in it.

    Refused as a whole when a known-good distance exceeds its oracle bound, or a baseline error the
    most that a baseline may be off.
    """
    from harness.judge.approval import approve as take
    from harness.judge.calibration import read

    approval = take(read(into), _proposed(source))
    if approval.refused:
        raise UsageError("nothing was approved:\n  " + "\n  ".join(approval.refused))
    diff = approval.diff(into.name)
    typer.echo(diff or f"{into} holds all of it already", nl=not diff)
    if diff and not dry_run:
        part = into.with_suffix(".part")
        part.write_text(approval.text, encoding="utf-8")
        part.replace(into)
        typer.echo(f"wrote {into}; review the change and commit it")


def _proposed(source: str) -> Sequence[Entry]:
    from harness.campaign.proposal import proposal_of
    from harness.judge.calibration import read

    if Path(source).is_file():
        return read(Path(source))
    return proposal_of(run_folder(source))
