"""`parity report`: a recorded run, written again in any form from its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.diff import HISTORY, compare
from harness.cli.errors import UsageError

if TYPE_CHECKING:
    from reports.load import Run
    from reports.view.changes import Changes


def report(
    *,
    run: Annotated[
        str | None, typer.Argument(help="Run id or folder; default: the newest run")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", help="html, markdown, junit, csv, parquet; comma-separated")
    ] = "html",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="File to write, or a folder for several; default: in the run"
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Run to compare with: id or folder; html and markdown tell")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="With --baseline: whose known findings may have expired")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave out prompts, token ids, and scripts with them")
    ] = False,
    annotate: Annotated[
        bool, typer.Option("--annotate", help="Also print ::error lines for GitHub, ten at most")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON for a program")
    ] = False,
) -> None:
    """Write a run's report again and print its summary; nothing is run.

    The exit code says whether it could be written, not what the verdict is: `parity gate` decides.
    """
    from reports.load import load_run
    from reports.redaction import redacted
    from reports.writers import FORMATS

    wanted = [name.strip() for name in formats.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown or not wanted:
        raise UsageError(
            f"unknown format {', '.join(unknown) or repr(formats)}; valid: {', '.join(FORMATS)}"
        )
    if rules is not None and baseline is None:
        raise UsageError("--rules needs --baseline: it says which of the findings have expired")
    from harness.cli.folders import run_folder

    folder = run_folder(run)
    changes = None
    if baseline is not None:
        changes = compare(
            folder,
            run_folder(baseline),
            rules=rules,
            history=HISTORY,
            prepare=redacted if redact else None,
        )
    loaded = load_run(folder)
    if redact:
        loaded = redacted(loaded)
    written: dict[str, str] = {}
    for name in wanted:
        form = FORMATS[name]
        target = folder / form.file
        if output is not None:
            target = output if len(wanted) == 1 else output / form.file
        written[name] = str(form.write(loaded, target, changes).resolve())
    if as_json:
        typer.echo(json.dumps(_document(loaded, written), indent=1))
    else:
        _print(loaded, written, changes)
    if annotate:
        from reports.annotations import annotation_lines

        for line in annotation_lines(loaded):
            typer.echo(line)


def _document(loaded: Run, written: dict[str, str]) -> dict[str, object]:
    from reports.view.known import known
    from reports.view.verdict import verdict

    found, before = verdict(loaded), known(loaded)
    return {
        "run_id": loaded.manifest.run_id,
        "report": next(iter(written.values())),
        "written": written,
        "safety": str(found.safety),
        "headline": found.headline,
        "exit_code": found.exit_code,
        "interrupted": found.interrupted,
        "counts": {count.look.word: count.pairs for count in found.counts},
        "cases": found.num_cases,
        "compared": found.num_compared,
        "findings": [finding.finding_id for finding in loaded.findings],
        "known": [] if before is None else [{"name": r.name, "now": r.fate} for r in before.rows],
        "problems": list(found.problems),
    }


def _print(loaded: Run, written: dict[str, str], changes: Changes | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from reports.terminal import print_changes, print_summary
    from reports.view.text import visible

    console = Console()
    print_summary(loaded, console)
    if changes is not None:
        console.print()
        print_changes(changes, console)
    for name, path in written.items():
        label = "report" if name == "html" else name
        console.print(Text(visible(f"{label}: {path}")), soft_wrap=True)
