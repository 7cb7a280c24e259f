"""`parity gate`: a recorded run held to the rules of one file; nothing is run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageError

if TYPE_CHECKING:
    from reports.gate import Decision

RULES = Path("parity.toml")


def gate(
    *,
    run: Annotated[
        str | None, typer.Argument(help="Run id or folder; default: the newest run")
    ] = None,
    rules: Annotated[Path, typer.Option(help="File with the rules and the known findings")] = RULES,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write the verdict, as JSON, here")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON for a program")
    ] = False,
) -> None:
    """Decide whether a run passes: new and expired findings, errors, vacuous comparisons, coverage.

    Ends with 0 when every rule is met; else with the first that applies: 1 a new or expired
    finding, or a known one that is fixed or that the run says nothing about; 2 an error, an
    incomplete run or misuse; 3 too much that is vacuous or too little that was judged.
    """
    from harness.cli.folders import run_folder
    from reports.gate import decide, read_rules, verdict_json
    from reports.load import load_run

    if not rules.is_file():
        raise UsageError(
            f"no rules file {rules}; name one with --rules. {RULES} in the repository of "
            "pooling-parity is one to start from"
        )
    loaded = load_run(run_folder(run))
    decision = decide(loaded, read_rules(rules), datetime.now(UTC).date())
    text = json.dumps(verdict_json(decision), indent=1)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(text)
    else:
        _print(decision)
    raise typer.Exit(decision.exit_code)


def _print(decision: Decision) -> None:
    from rich.console import Console
    from rich.text import Text

    from reports.gate.decision import in_words
    from reports.view.text import visible

    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(Text(visible(text), style=style), soft_wrap=True)

    say(f"run {decision.run.manifest.run_id} against {decision.rules.source}", "dim")
    for check in decision.checks:
        mark, style = ("✓", "green") if check.passed else ("✕", "bold red")
        say(f"{mark} {check.rule}: {check.found} (wanted: {check.wanted})", style)
        if not check.passed and check.remedy:
            say(f"    {check.remedy}")
    for standing in decision.standings:
        finding, entry = standing.finding, standing.entry
        say(f"{standing.state} {finding.finding_id}: {finding.title}")
        if entry is not None:
            say(f"    {entry.owner}, until {entry.expires}, {entry.link}", "dim")
    for known in decision.replayed:
        if known.source is not None:
            say(f"{known.fate} {known.name} ({known.source}): {known.title}")
    say(in_words(decision), "bold red" if decision.failed else "bold green")
