"""`parity diff`: what changed between two recorded runs; nothing is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harness.record import RunManifest
    from reports.load import Run
    from reports.view.changes import Changes

HISTORY = 5
MAX_BYTES = 64 * 1024 * 1024
"""Records of earlier runs that `parity run` reads to compare with; the newest come first."""


def diff(
    before: Annotated[str, typer.Argument(help="Baseline run: id or folder")],
    after: Annotated[
        str | None, typer.Argument(help="The run to compare with it; default: the newest")
    ] = None,
    *,
    rules: Annotated[
        Path | None, typer.Option(help="Rules file whose known findings may have expired")
    ] = None,
    history: Annotated[
        int, typer.Option(min=0, help="Earlier runs of the profile to look at, for drift")
    ] = HISTORY,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON for a program")
    ] = False,
) -> None:
    """Compare two runs: findings that are new, still failing, fixed or flaky; drift; environment.

    Ends with 1 if a finding is new or expired, else with 0.
    """
    from harness.cli.folders import run_folder
    from harness.record import to_json

    folder = run_folder(after)
    found = compare(folder, run_folder(before), rules=rules, history=history)
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=1))
    else:
        _print(found)
    raise typer.Exit(found.exit_code)


def compare(
    folder: Path,
    baseline: Path,
    *,
    rules: Path | None = None,
    history: int = HISTORY,
    prepare: Callable[[Run], Run] | None = None,
) -> Changes:
    """The run in `folder` against the one in `baseline`, and `history` earlier ones beside it.

    `prepare`: what is done to every run first, such as taking its prompts out.
    """
    from harness.cli.folders import earlier_runs
    from reports.gate import read_rules
    from reports.load import load_run
    from reports.view.changes import changes

    def load(path: Path) -> Run:
        return load_run(path) if prepare is None else prepare(load_run(path))

    run = load(folder)
    others = [load(f) for f in earlier_runs(folder, run.manifest, history)]
    return changes(
        run,
        load(baseline),
        history=others,
        known=() if rules is None else read_rules(rules).known,
        today=datetime.now(UTC).date(),
    )


def since_the_last_run(
    folder: Path, run: Run, *, prepare: Callable[[Run], Run] | None = None
) -> Changes | None:
    """What changed in `run`, kept in `folder`, since the newest finished run that asked the same.

    The same: profile, system, switches and checkpoints. A run that cannot be read is passed over;
    None where no run is left. `prepare`: what is done to every earlier run first.
    """
    from harness.cli.folders import earlier_runs
    from harness.record import RecordError, read_manifest
    from reports.load import load_run
    from reports.view.changes import changes

    earlier: list[Run] = []
    left = MAX_BYTES
    for path in reversed(earlier_runs(folder, run.manifest, HISTORY)):
        try:
            if _asked(read_manifest(path)) != _asked(run.manifest):
                continue
            left -= (path / "records.jsonl").stat().st_size
            if left < 0:
                break
            other = load_run(path)
        except (RecordError, OSError):
            continue
        if not other.interrupted:
            earlier.append(other if prepare is None else prepare(other))
    return changes(run, earlier[0], history=earlier[1:]) if earlier else None


def _asked(manifest: RunManifest) -> tuple[object, ...]:
    axes = frozenset((a.name, a.values) for a in manifest.axes)
    return manifest.settings.get("system"), axes, frozenset(c.name for c in manifest.checkpoints)


def _print(found: Changes) -> None:
    from rich.console import Console

    from reports.terminal import print_changes

    print_changes(found, Console())
