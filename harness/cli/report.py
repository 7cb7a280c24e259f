"""`parity report`: the report of a recorded run, written again from its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    *,
    run: Annotated[
        str | None, typer.Argument(help="Run id or folder; default: the newest run")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; default: report.html in the run"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON for a program")
    ] = False,
) -> None:
    """Write the HTML report of a run again and print its summary; nothing is run."""
    from rich.console import Console
    from rich.text import Text

    from harness.cli.folders import run_folder
    from reports.html import render
    from reports.load import load_run
    from reports.terminal import print_summary
    from reports.view.text import visible
    from reports.view.verdict import verdict

    folder = run_folder(run)
    loaded = load_run(folder)
    target = render(loaded, output or folder / "report.html").resolve()
    if as_json:
        found = verdict(loaded)
        document = {
            "run_id": loaded.manifest.run_id,
            "report": str(target),
            "safety": str(found.safety),
            "headline": found.headline,
            "exit_code": found.exit_code,
            "interrupted": found.interrupted,
            "counts": {count.look.word: count.pairs for count in found.counts},
            "cases": found.num_cases,
            "compared": found.num_compared,
            "findings": [finding.finding_id for finding in loaded.findings],
            "problems": list(found.problems),
        }
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
        return
    console = Console()
    print_summary(loaded, console)
    console.print(Text(visible(f"report: {target}")), soft_wrap=True)
