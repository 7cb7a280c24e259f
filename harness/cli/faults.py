"""`parity faults`: the kill matrix, this product's own test result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.cli.errors import UsageError
from harness.cli.fault_files import faults_from
from harness.cli.folders import run_folder
from harness.cli.kill_tables import print_matrix, told
from harness.cli.rivals import document
from harness.controls import CONTROLS
from harness.controls.base import Control
from harness.faults import FAULTS
from harness.faults.base import Fault
from harness.trials.catalogue import kill_tasks, reasons
from harness.trials.kills import BUDGETS, kill_matrix
from harness.trials.ledger import Ledger
from harness.trials.matrix import KillMatrix
from reports.load import KILL_MATRIX

DTYPES = ("float32", "bfloat16", "float16")
SEEDS = ("stale-input-buffer", "unowned-token-rows", "stage-skips-poststep")
"""The three bugs that the project starts from: what `smoke` plants."""


def faults(
    *,
    profile: Annotated[
        str,
        typer.Option(
            help="smoke: the three bugs; pr and nightly: every fault and control, on more cases"
        ),
    ] = "smoke",
    name: Annotated[
        list[str] | None, typer.Option(help="Only this fault or control; may be repeated")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Faults of this Python file instead; see docs/faults.md")
    ] = None,
    seed: Annotated[int, typer.Option(help="Everything drawn follows from it")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes")] = 2,
    list_: Annotated[
        bool, typer.Option("--list", help="List the faults and controls and stop")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
    dtype: Annotated[
        list[str] | None,
        typer.Option(help="dtype the faulty engines compute in; may be repeated; float32"),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(help="Markdown file for what other projects' rules say of the same outputs"),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Results, a line each as they come; what it holds is not run again"),
    ] = None,
) -> None:
    """Plant each fault in turn and see whether ordinary cases and checks kill it.

    Controls, legitimate differences of arithmetic, are put in the same way: none may be flagged.
    """
    known = {f.name: f for f in faults_from(file)} if file is not None else dict(FAULTS)
    controls = dict(CONTROLS) if file is None else {}
    if list_:
        _list(list(known.values()), list(controls.values()), as_json=as_json)
        return
    chosen, wanted = _chosen(known, controls, profile, name, every=file is not None)
    dtypes = _dtypes(dtype)
    tasks = kill_tasks(chosen, wanted, BUDGETS[profile], seed, dtypes)
    kept = Ledger(ledger) if ledger is not None else None
    console, results = Console(stderr=as_json), []
    with _progress(console) as progress:
        bar = progress.add_task("faults", total=len(tasks))
        for kill in kill_matrix(tasks, workers=workers, ledger=kept):
            results.append(kill)
            progress.advance(bar)
            if not console.is_terminal:
                console.print(told(kill, is_control=kill.name in controls), highlight=False)
    matrix = KillMatrix.of(
        results,
        chosen=[f.name for f in chosen],
        controls=list(controls),
        reasons=reasons(chosen),
    )
    text = json.dumps({**matrix.to_json(), "seed": seed})
    _attach(text, console)
    if as_json:
        typer.echo(text)
    else:
        print_matrix(console, matrix)
        said = "".join(f" --dtype {d}" for d in dtype or ())
        again = f"parity faults --profile {profile} --seed {seed}{said}"
        if rules is not None:
            rules.write_text(document(matrix.rivalry(), [again]), encoding="utf-8")
        console.print(f"seed {seed}; again: {again}", highlight=False)
    raise typer.Exit(0 if matrix.passes else 1)


def _dtypes(asked: Sequence[str] | None) -> tuple[str, ...]:
    unknown = sorted(set(asked or ()) - set(DTYPES))
    if unknown:
        raise UsageError(f"unknown dtype {', '.join(unknown)}; valid: {', '.join(DTYPES)}")
    return tuple(asked or DTYPES[:1])


def _attach(matrix: str, console: Console) -> None:
    """Beside the newest run's records, whose report then shows it; nowhere without a run."""
    try:
        folder = run_folder(None)
    except UsageError:
        return
    (folder / KILL_MATRIX).write_text(matrix, encoding="utf-8")
    console.print(f"kill matrix: `parity report {folder.name}` shows it", highlight=False)


def _chosen(
    faults: Mapping[str, Fault],
    controls: Mapping[str, Control],
    profile: str,
    names: Sequence[str] | None,
    *,
    every: bool,
) -> tuple[list[Fault], list[Control]]:
    if profile not in BUDGETS:
        raise UsageError(f"unknown profile {profile!r}; valid: {', '.join(BUDGETS)}")
    valid = sorted({*faults, *controls})
    unknown = sorted(set(names or ()) - set(valid))
    if unknown:
        raise UsageError(f"unknown fault {', '.join(unknown)}; valid: {', '.join(valid)}")
    if not names and profile == "smoke" and not every:
        names = SEEDS
    return (
        [fault for fault in faults.values() if not names or fault.name in names],
        [control for control in controls.values() if not names or control.name in names],
    )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _list(faults: Sequence[Fault], controls: Sequence[Control], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": f.name, "class": f.kind, "mechanism": f.mechanism, "sources": f.sources}
            for f in faults
        ]
        rows += [
            {"name": c.name, "class": "control", "mechanism": c.difference, "sources": ()}
            for c in controls
        ]
        typer.echo(json.dumps(rows))
        return
    for fault in faults:
        sources = f" ({', '.join(fault.sources)})" if fault.sources else ""
        typer.echo(f"{fault.name}: {fault.mechanism}{sources}")
    for control in controls:
        typer.echo(f"control {control.name}, in {control.where}: {control.difference}")
