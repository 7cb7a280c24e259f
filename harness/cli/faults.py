"""`parity faults`: the kill matrix, this product's own test result."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.errors import UsageError
from harness.cli.folders import run_folder
from harness.faults import FAULTS, faults_in
from harness.faults.base import Fault
from harness.trials.kills import BUDGETS, CHECKS, CLEAN, Kill, Task, kill_matrix
from reports.load import KILL_MATRIX

SEEDS = ("stale-input-buffer", "unowned-token-rows", "stage-skips-poststep")
"""The three bugs that the project starts from: what `smoke` plants."""


def faults(
    *,
    profile: Annotated[
        str,
        typer.Option(help="smoke: the three bugs; pr and nightly: every fault, on more cases"),
    ] = "smoke",
    name: Annotated[list[str] | None, typer.Option(help="Only this fault; may be repeated")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Faults of this Python file instead; see docs/faults.md")
    ] = None,
    seed: Annotated[int, typer.Option(help="Everything drawn follows from it")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes")] = 2,
    list_: Annotated[bool, typer.Option("--list", help="List the faults and stop")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Plant each fault in turn and see whether ordinary cases and checks kill it."""
    known = {f.name: f for f in faults_from(file)} if file is not None else dict(FAULTS)
    if list_:
        _list(list(known.values()), as_json=as_json)
        return
    chosen = _chosen(known, profile, name, every=file is not None)
    budget = BUDGETS[profile]
    checkpoints = sorted({fault.checkpoint for fault in chosen})
    tasks = [
        *(Task(name=CLEAN, plugin="", checkpoint=c, seed=seed, budget=budget) for c in checkpoints),
        *(
            Task(name=f.name, plugin=f.plugin, checkpoint=f.checkpoint, seed=seed, budget=budget)
            for f in sorted(chosen, key=lambda f: f.checkpoint)
        ),
    ]
    console, results = Console(stderr=as_json), []
    with _progress(console) as progress:
        bar = progress.add_task("faults", total=len(tasks))
        for kill in kill_matrix(tasks, workers=min(workers, len(tasks))):
            results.append(kill)
            progress.advance(bar)
            if not console.is_terminal:
                console.print(_told(kill), highlight=False)
    clean = [kill for kill in results if kill.name == CLEAN]
    order = {fault.name: i for i, fault in enumerate(chosen)}
    kills = sorted((k for k in results if k.name != CLEAN), key=lambda k: order[k.name])
    false_alarms = sum(n for kill in clean for check, n in kill.by.items() if check != "error")
    rows = [
        {"name": k.name, "killed": k.killed, "by": k.by, "cases": k.cases, "seconds": k.seconds}
        for k in kills
    ]
    matrix = json.dumps({"faults": rows, "false_alarms": false_alarms, "seed": seed})
    _attach(matrix, console)
    if as_json:
        typer.echo(matrix)
    else:
        _print(console, kills, clean, false_alarms)
        again = f"parity faults --profile {profile} --seed {seed}"
        console.print(f"seed {seed}; again: {again}", highlight=False)
    raise typer.Exit(0 if all(kill.killed for kill in kills) and not false_alarms else 1)


def faults_from(file: Path) -> tuple[Fault, ...]:
    """The faults that a Python file declares. UsageError says what is wrong with the file.

    Its folder is put on the path, and on that of every worker started from here, so that the
    plug-ins can be imported by name.
    """
    if not file.is_file():
        raise UsageError(f"no file {file}: expected a Python file that declares faults")
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file: expected a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    found = faults_in(module)
    if not found:
        raise UsageError(
            f"{file} declares no fault: expected functions under @planted(...), see docs/faults.md"
        )
    strange = sorted({f.checkpoint for f in found} - set(CHECKPOINTS))
    if strange:
        raise UsageError(
            f"{file}: unknown checkpoint {', '.join(strange)}; valid: {', '.join(CHECKPOINTS)}"
        )
    return found


def _attach(matrix: str, console: Console) -> None:
    """Beside the newest run's records, whose report then shows it; nowhere without a run."""
    try:
        folder = run_folder(None)
    except UsageError:
        return
    (folder / KILL_MATRIX).write_text(matrix, encoding="utf-8")
    console.print(f"kill matrix: `parity report {folder.name}` shows it", highlight=False)


def _chosen(
    known: dict[str, Fault], profile: str, names: Sequence[str] | None, *, every: bool
) -> list[Fault]:
    if profile not in BUDGETS:
        raise UsageError(f"unknown profile {profile!r}; valid: {', '.join(BUDGETS)}")
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise UsageError(f"unknown fault {', '.join(unknown)}; valid: {', '.join(sorted(known))}")
    if not names and profile == "smoke" and not every:
        names = SEEDS
    return [fault for fault in known.values() if not names or fault.name in names]


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _told(kill: Kill) -> str:
    if kill.name == CLEAN:
        wrong = sum(kill.by.values())
        return f"{CLEAN}, {kill.checkpoint}: {kill.pairs} comparisons, {wrong} false alarms"
    how = f"killed by case {kill.cases}" if kill.killed else f"ALIVE after {kill.cases} cases"
    return f"{kill.name}: {how} ({', '.join(f'{c} {n}' for c, n in kill.by.items()) or 'nothing'})"


def _print(
    console: Console, kills: Sequence[Kill], clean: Sequence[Kill], false_alarms: int
) -> None:
    table = Table(title="kill matrix: comparisons that failed, by check")
    for column in ("fault", "killed", "by case", *CHECKS):
        table.add_column(column)
    for kill in kills:
        table.add_row(
            kill.name,
            "yes" if kill.killed else "NO",
            str(kill.cases),
            *(str(kill.by.get(check, "")) for check in CHECKS),
        )
    console.print(table)
    killed = sum(kill.killed for kill in kills)
    pairs = sum(kill.pairs for kill in clean)
    console.print(
        f"{killed} of {len(kills)} killed; {false_alarms} false alarms in {pairs} comparisons on "
        "the clean engine",
        highlight=False,
    )


def _list(known: Sequence[Fault], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": f.name, "class": f.kind, "mechanism": f.mechanism, "sources": f.sources}
            for f in known
        ]
        typer.echo(json.dumps(rows))
        return
    for fault in known:
        sources = f" ({', '.join(fault.sources)})" if fault.sources else ""
        typer.echo(f"{fault.name}: {fault.mechanism}{sources}")
