"""`parity replay`: run a finding's shrunk case again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.axes import Cell
from harness.campaign.spec import RunSpec
from harness.cli.errors import UsageError
from harness.cli.folders import run_folder
from harness.findings import replay_finding
from harness.known_cases import folder_of, kept
from harness.record import FindingRecord, KnownCase, Outcome, read_manifest, read_records


def replay(
    finding_id: Annotated[str, typer.Argument(help="Id of a finding, or its first characters")],
    *,
    run: Annotated[
        str | None, typer.Option(help="Run the finding is in; default: the newest")
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Leave planted faults out")] = False,
    rules: Annotated[
        Path | None, typer.Option(help="Replay the case kept beside this rules file instead")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Stream policy in place of the finding's, such as 'drawn(0,2)'"),
    ] = None,
) -> None:
    """Run a finding's smallest case in every cell again: still failing (exit 1) or fixed (0)."""
    if rules is not None and (run is not None or clean):
        raise UsageError(
            "--rules replays a kept case, which has no run and no plants: leave out --run, --clean"
        )
    with ExitStack() as open_until_told:
        if rules is not None:
            case = find_kept(rules, finding_id)
            finding, spec = case.finding, RunSpec.from_json(case.settings)
            folder = Path(open_until_told.enter_context(TemporaryDirectory()))
        else:
            folder = run_folder(run)
            finding = find_finding(folder.name, finding_id, list(read_records(folder)))
            spec = RunSpec.from_json(read_manifest(folder).settings)
        verdict = replay_finding(spec, finding, folder, clean=clean, policy=policy)
    console = Console()
    planted = "without plants" if clean else ", ".join(spec.plants) or "nothing planted"
    console.print(f"{finding.finding_id}: {finding.title} ({planted})", highlight=False)
    table = Table()
    axes = list(Cell.of(verdict.rows[0].cell)) if verdict.rows else []
    for column in (*axes, "outcome", finding.metric, "note"):
        table.add_column(column)
    for row in verdict.rows:
        value = "" if row.value is None else f"{row.value:.3g}"
        values = [str(row.cell[axis]) for axis in axes]
        table.add_row(*values, str(row.outcome), value, row.note)
    console.print(table)
    errors = [row for row in verdict.rows if row.outcome is Outcome.ERROR]
    if errors:
        console.print(f"ERROR: {errors[0].note}", highlight=False)
        raise typer.Exit(2)
    console.print("still failing" if verdict.failing else "passes", style="bold")
    raise typer.Exit(int(verdict.failing))


def find_finding(run_id: str, wanted: str, records: Sequence[object]) -> FindingRecord:
    """The one finding whose id begins so. UsageError lists those there are."""
    findings = [r for r in records if isinstance(r, FindingRecord)]
    matches = [f for f in findings if f.finding_id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(f.finding_id for f in findings) or "none"
    problem = "is not one" if not matches else "fits several"
    raise UsageError(f"{wanted!r} {problem} of run {run_id}'s findings: {known}")


def find_kept(rules: Path, wanted: str) -> KnownCase:
    """The one case kept beside a rules file whose id begins so. UsageError lists all of them."""
    cases = kept(rules)
    matches = [case for case in cases if case.finding.finding_id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(case.finding.finding_id for case in cases) or "none"
    problem = "is not one" if not matches else "fits several"
    raise UsageError(f"{wanted!r} {problem} of the cases in {folder_of(rules)}: {known}")
