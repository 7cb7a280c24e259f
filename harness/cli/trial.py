"""`parity trial`: how soon planted defects are found, and how exactly they are explained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from harness.cli.errors import UsageError
from harness.cli.folders import home

if TYPE_CHECKING:
    from harness.faults.base import Fault

app = typer.Typer(
    help="Measure the harness itself: time to first detection, exactness of explanations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

CHECKPOINT = "tiny-qwen3"


@app.command()
def detection(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for each fault, from 0")] = 20,
    name: Annotated[list[str] | None, typer.Option(help="Only this fault; may be repeated")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Results; what it holds is not repeated")
    ] = None,
) -> None:
    """Cases and seconds until each planted fault is first seen by ordinary cases."""
    from harness.trials.bench import TrialBench
    from harness.trials.detection import detect
    from harness.trials.ledger import Ledger

    # This bench varies the primary axes only.
    chosen = {f.name: f.plugin for f in _faults(name) if not f.axes}
    results = Ledger(ledger or home() / "trials" / "detection.jsonl")
    console, rows = Console(), []
    with TemporaryDirectory() as folder:
        bench = TrialBench(CHECKPOINT, Path(folder))
        try:
            bench.start()
            for row in detect(bench, results, chosen, range(seeds)):
                rows.append(row)
                seen = f"case {row['cases']}" if row["found"] else f"not in {row['cases']} cases"
                console.print(f"{row['fault']} seed {row['seed']}: {seen}", highlight=False)
        finally:
            bench.close()
    _print_detection(console, rows)
    console.print(f"results: {results.path}", soft_wrap=True, highlight=False)
    raise typer.Exit(0 if all(row["found"] for row in rows) else 1)


def _faults(names: Sequence[str] | None) -> list[Fault]:
    """Those of the catalogue that are named, or all of them."""
    from harness.faults import FAULTS

    unknown = [name for name in names or () if name not in FAULTS]
    if unknown:
        raise UsageError(f"unknown fault {', '.join(unknown)}; valid: {', '.join(FAULTS)}")
    return [FAULTS[name] for name in names or FAULTS]


def _print_detection(console: Console, rows: Iterable[Mapping[str, Any]]) -> None:
    table = Table(title="first detection, by ordinary cases on warm engines")
    for column in ("fault", "found", "cases: median", "most", "seconds: median", "most"):
        table.add_column(column)
    by_fault: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_fault[row["fault"]].append(row)
    for name, group in by_fault.items():
        seen = [row for row in group if row["found"]]
        cases, seconds = [r["cases"] for r in seen], [r["seconds"] for r in seen]
        table.add_row(
            name,
            f"{len(seen)} of {len(group)}",
            *(f"{f(cases):g}" if cases else "-" for f in (median, max)),
            *(f"{f(seconds):.1f}" if seconds else "-" for f in (median, max)),
        )
    console.print(table)


@app.command()
def conditions(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for each fault, from 0")] = 5,
    name: Annotated[list[str] | None, typer.Option(help="Only this fault; may be repeated")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Results; what it holds is not repeated")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes")] = 2,
) -> None:
    """See that each fault shows where its record says, and hides where its record says.

    Also told: cases and seconds until ordinary cases first see it. What the results hold is not run
    again, so a trial that was stopped goes on.
    """
    from harness.cli.condition_table import print_conditions, told
    from harness.trials.conditions import Unanswered, check_conditions, held_to_record
    from harness.trials.ledger import Ledger

    chosen = _faults(name)
    results, console = Ledger(ledger or home() / "trials" / "conditions.jsonl"), Console()
    unanswered = 0
    for row in check_conditions(chosen, range(seeds), results, workers=workers):
        unanswered += isinstance(row, Unanswered)
        console.print(told(row), highlight=False, soft_wrap=True)
    right = print_conditions(
        console,
        [
            held_to_record(row, fault)
            for fault in chosen
            for row in results.rows
            if row["fault"] == fault.name and row["seed"] < seeds
        ],
    )
    if unanswered:
        console.print(f"{unanswered} not answered, see above: run it again", highlight=False)
    console.print(f"results: {results.path}", soft_wrap=True, highlight=False)
    raise typer.Exit(0 if right and not unanswered else 1)


@app.command()
def explanation(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Perturbations, one a seed")] = 200,
    first: Annotated[int, typer.Option("--from", min=0, help="The first of the seeds")] = 0,
    ledger: Annotated[
        Path | None, typer.Option(help="Results; what it holds is not repeated")
    ] = None,
) -> None:
    """Plant seeded perturbations of order 1 to 3 and see how exactly each is explained.

    Parts with a ledger each can run side by side; their ledgers, one after the other in one file,
    are the ledger of the whole, which is then told without running anything.
    """
    from harness.campaign.manifest import checkpoint_info
    from harness.trials.bench import TrialBench
    from harness.trials.explanation import explain
    from harness.trials.ledger import Ledger

    results = Ledger(ledger or home() / "trials" / "explanation.jsonl")
    console, chosen = Console(), range(first, first + seeds)
    missing = [seed for seed in chosen if not results.holds(seed=seed)]
    if missing:
        with TemporaryDirectory() as folder:
            bench = TrialBench(CHECKPOINT, Path(folder))
            try:
                bench.start()
                layers = checkpoint_info(CHECKPOINT).num_layers
                for row in explain(bench, results, missing, num_layers=layers):
                    console.print(_told(row), highlight=False, soft_wrap=True)
            finally:
                bench.close()
    by_seed = {row["seed"]: row for row in results.rows if row["seed"] in chosen}
    _print_explanation(console, by_seed.values())
    console.print(f"results: {results.path}", soft_wrap=True, highlight=False)


def _told(row: Mapping[str, Any]) -> str:
    name = row["plugin"].rpartition(":")[2]
    if not row["exposed"]:
        return f"{row['seed']}: {name}: not exposed in {row['cases']} cases"
    axes = "axes exact" if row["axes_exact"] else f"AXES {row['said']}"
    place = "place exact" if row["localised"] else f"PLACE off by {row['layer_off']} layers"
    return f"{row['seed']}: {name}: {axes}, {place}, {row['calls']} calls"


def _print_explanation(console: Console, rows: Iterable[Mapping[str, Any]]) -> None:
    table = Table(title="seeded perturbations, explained by attribution and localisation")
    columns = ("order", "planted", "exposed", "axes exact", "1-minimal", "place exact")
    for column in (*columns, "within one layer", "calls: median", "tokens over: median"):
        table.add_column(column)
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[str(row["order"])].append(row)
        groups["all"].append(row)
    for order, group in sorted(groups.items()):
        seen = [row for row in group if row["exposed"]]
        near = [r for r in seen if r["layer_off"] is not None and abs(r["layer_off"]) <= 1]
        table.add_row(
            order,
            str(len(group)),
            str(len(seen)),
            *(_share(sum(r[k] for r in seen), len(seen)) for k in ("axes_exact", "minimal")),
            _share(sum(r["localised"] for r in seen), len(seen)),
            _share(len(near), len(seen)),
            *(f"{median(r[k] for r in seen):g}" if seen else "-" for k in ("calls", "tokens_over")),
        )
    console.print(table)
    console.print(told_shrinks(groups["all"]), highlight=False, soft_wrap=True)


def told_shrinks(rows: Iterable[Mapping[str, Any]]) -> str:
    """Median and most engine calls of a shrink; older results do not say."""
    exposed = [row for row in rows if row["exposed"]]
    calls = [calls for row in exposed for calls in row.get("shrinks", ())]
    unknown = sum("shrinks" not in row for row in exposed)
    beside = f"; unknown of {unknown} older results" if unknown else ""
    found = f"median {median(calls):g}, most {max(calls)}, of {len(calls)}" if calls else "none"
    return f"engine calls of a shrink alone: {found}{beside}"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "-"
