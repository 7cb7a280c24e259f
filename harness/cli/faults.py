"""`parity faults`: the kill matrix, this product's own test result."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.errors import UsageError
from harness.cli.folders import run_folder
from harness.cli.kill_tables import print_matrix, told
from harness.cli.rivals import document
from harness.controls import CONTROLS
from harness.controls.base import Control
from harness.faults import FAULTS, faults_in
from harness.faults.base import Fault
from harness.trials.kills import BUDGETS, KillBudget, Task, kill_matrix
from harness.trials.matrix import CLEAN, KillMatrix
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
    tasks = _tasks(chosen, wanted, BUDGETS[profile], seed, dtypes)
    console, results = Console(stderr=as_json), []
    with _progress(console) as progress:
        bar = progress.add_task("faults", total=len(tasks))
        for kill in kill_matrix(tasks, workers=min(workers, len(tasks))):
            results.append(kill)
            progress.advance(bar)
            if not console.is_terminal:
                console.print(told(kill, is_control=kill.name in controls), highlight=False)
    matrix = KillMatrix.of(results, chosen=[f.name for f in chosen], controls=list(controls))
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


def _tasks(
    chosen: Sequence[Fault],
    controls: Sequence[Control],
    budget: KillBudget,
    seed: int,
    dtypes: Sequence[str],
) -> list[Task]:
    """The clean engine on every checkpoint and dtype first; what shares an engine, together."""
    faulty = {(f.checkpoint, dtype, f.axes) for f in chosen for dtype in dtypes}
    engines = sorted(faulty | {(c.checkpoint, c.dtype, ()) for c in controls})
    return [
        *(
            Task(
                name=CLEAN,
                plugin="",
                checkpoint=checkpoint,
                dtype=dtype,
                axes=axes,
                seed=seed,
                budget=budget,
            )
            for checkpoint, dtype, axes in engines
        ),
        *(
            Task(
                name=f.name,
                plugin=f.plugin,
                checkpoint=f.checkpoint,
                dtype=d,
                axes=f.axes,
                seed=seed,
                budget=budget,
            )
            for d in dtypes
            for f in sorted(chosen, key=lambda f: (f.checkpoint, f.axes))
        ),
        *(
            Task(
                name=c.name,
                plugin=c.plugin,
                checkpoint=c.checkpoint,
                dtype=c.dtype,
                seed=seed,
                budget=budget,
                is_control=True,
            )
            for c in sorted(controls, key=_engine)
        ),
    ]


def _dtypes(asked: Sequence[str] | None) -> tuple[str, ...]:
    unknown = sorted(set(asked or ()) - set(DTYPES))
    if unknown:
        raise UsageError(f"unknown dtype {', '.join(unknown)}; valid: {', '.join(DTYPES)}")
    return tuple(asked or DTYPES[:1])


def _engine(control: Control) -> tuple[str, str]:
    return control.checkpoint, control.dtype


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
