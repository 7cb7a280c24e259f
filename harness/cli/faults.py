"""`parity faults`: the kill matrix, this product's own test result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.campaign.local import LocalCampaign
from harness.cli.errors import UsageError
from harness.cli.folders import runs_root
from harness.cli.progress import ProgressWatcher
from harness.cli.run import build_spec, manifest_of, new_run_id
from harness.faults import FAULTS
from harness.record import Outcome, PairRecord, RunWriter, read_records
from reports.load import KILL_MATRIX


def faults(
    *,
    profile: Annotated[
        str, typer.Option(help="Ordinary cases and checks of this profile")
    ] = "smoke",
    name: Annotated[list[str] | None, typer.Option(help="Only this fault; may be repeated")] = None,
    seed: Annotated[int, typer.Option(help="Everything drawn follows from it")] = 0,
    list_: Annotated[bool, typer.Option("--list", help="List the faults and stop")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Plant each fault in turn and see whether ordinary cases and checks kill it."""
    console = Console(stderr=as_json)
    if list_:
        _list(as_json=as_json)
        return
    unknown = sorted(set(name or ()) - set(FAULTS))
    if unknown:
        raise UsageError(f"unknown fault {', '.join(unknown)}; valid: {', '.join(sorted(FAULTS))}")
    clean, clean_folder = _outcomes([], profile, seed, console)
    false_alarms = clean.get("FAIL", 0)
    rows = []
    for fault in name or sorted(FAULTS):
        found, _ = _outcomes([fault], profile, seed, console)
        rows.append({"name": fault, "killed": bool(found.get("FAIL")), "by": found})
    matrix = json.dumps({"faults": rows, "false_alarms": false_alarms})
    # The clean run's report shows it: `parity report` on that run.
    (clean_folder / KILL_MATRIX).write_text(matrix, encoding="utf-8")
    if as_json:
        typer.echo(matrix)
    else:
        _print(console, rows, false_alarms)
    raise typer.Exit(0 if all(row["killed"] for row in rows) and not false_alarms else 1)


def _outcomes(
    plants: list[str], profile: str, seed: int, console: Console
) -> tuple[dict[str, int], Path]:
    """Outcome or check -> comparisons, from one run with these plants; and the run's folder."""
    spec, notices = build_spec(
        profile=profile,
        only=None,
        models=[],
        cases=None,
        plants=plants,
        seed=seed,
        batch_invariant=False,
    )
    folder = runs_root() / new_run_id()
    writer = RunWriter(folder, manifest_of(spec, folder.name, notices, tuple(plants)))
    console.print(f"{plants[0] if plants else 'clean engine'}: run {folder.name}", highlight=False)
    with ProgressWatcher(spec, console) as watcher:
        LocalCampaign(spec, writer, watcher=watcher).run()
    writer.close()
    counts: dict[str, int] = {}
    for record in read_records(folder):
        if isinstance(record, PairRecord) and record.outcome is not Outcome.INAPPLICABLE:
            counts[str(record.outcome)] = counts.get(str(record.outcome), 0) + 1
            if record.outcome is Outcome.FAIL:
                raced = "happens-before" in record.reason
                measured = any(m.exceeded for m in record.measurements) or not raced
                for check, saw in ((str(record.tier), measured), ("happens-before", raced)):
                    counts[check] = counts.get(check, 0) + int(saw)
    return counts, folder


def _print(console: Console, rows: list[dict[str, object]], false_alarms: int) -> None:
    table = Table(title="kill matrix")
    for column in ("fault", "killed", "failures", "exact", "reordered", "kernel", "happens-before"):
        table.add_column(column)
    for row in rows:
        by = row["by"]
        assert isinstance(by, dict)
        table.add_row(
            str(row["name"]),
            "yes" if row["killed"] else "NO",
            *(
                str(by.get(c, 0))
                for c in ("FAIL", "exact", "reordered", "kernel", "happens-before")
            ),
        )
    console.print(table)
    killed = sum(bool(row["killed"]) for row in rows)
    console.print(
        f"{killed} of {len(rows)} killed; {false_alarms} false alarms on the clean engine"
    )


def _list(*, as_json: bool) -> None:
    if as_json:
        typer.echo(
            json.dumps([{"name": f.name, "mechanism": f.mechanism} for f in FAULTS.values()])
        )
        return
    for fault in FAULTS.values():
        typer.echo(f"{fault.name}: {fault.mechanism} ({', '.join(fault.sources)})")
