"""`parity search`: climb towards the case that comes nearest to its bounds."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.errors import UsageError
from harness.cli.folders import corpus_root

if TYPE_CHECKING:
    from harness.campaign.corpus import KeptCase
    from harness.search.targeted import Climb, Hardest

KEPT = 5
"""Hardest cases that join the corpus."""


def search(
    *,
    model: Annotated[str, typer.Option(help="Checkpoint of the catalogue")] = "tiny-qwen3",
    examples: Annotated[
        int, typer.Option(min=2, help="Cases: half drawn, half climbing from the best of them")
    ] = 100,
    seed: Annotated[int, typer.Option(help="Where the search starts")] = 0,
    plant: Annotated[
        str | None, typer.Option(help="Plant this fault; see `parity faults --list`")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Corpus to add the hardest cases to; default: corpus/MODEL.jsonl"),
    ] = None,
) -> None:
    """Look for the case whose error comes nearest to its bound, interleavings included.

    The hardest cases join the checkpoint's corpus, which `parity run` runs before any drawn case.
    Exit code 1 when a case failed.
    """
    from harness.campaign.corpus import add, file_of
    from harness.cli.plants import plugins_of
    from harness.search.targeted import Climb
    from harness.strategies.cases import cases
    from harness.trials.bench import TrialBench

    if model not in CHECKPOINTS:
        raise UsageError(f"unknown model {model!r}; valid: {', '.join(CHECKPOINTS)}")
    console = Console()
    console.print(f"{model}: about {examples} cases, seed {seed}", highlight=False)
    with TemporaryDirectory() as folder:
        bench = TrialBench(model, Path(folder))
        try:
            bench.start()
            for plugin in plugins_of([plant] if plant else []):
                bench.plant(plugin)
            climb = Climb(cases(bench.space), bench.pairs_once)
            climb.run(examples=examples, start=seed)
        finally:
            bench.close()
    _print(console, climb)
    corpus = out or file_of(corpus_root(), model)
    added = add(corpus, [_kept(climb, hard) for hard in climb.hardest[:KEPT]])
    console.print(f"{added} new cases in {corpus}; run them: parity run --cases {corpus}")
    if out is None:
        console.print(f"`parity run` on {model} runs them first", highlight=False)
    raise typer.Exit(1 if climb.failed else 0)


def _print(console: Console, climb: Climb) -> None:
    table = Table(title="nearest to their bounds")
    for column in ("case", "task", "tokens", "of its bound", "against", "differs in", "settings"):
        table.add_column(column)
    for found in climb.hardest[:KEPT]:
        table.add_row(
            found.case.case_id,
            found.case.task,
            ", ".join(str(len(p.tokens)) if p.tokens else "text" for p in found.case.prompts),
            f"{found.ratio:.3g}",
            str(found.pair.comparison),
            ", ".join(found.pair.axes) or "-",
            ", ".join(found.settings.values()),
        )
    console.print(table)
    nearest = climb.hardest[0].ratio if climb.hardest else 0.0
    console.print(
        f"{climb.tried} cases: undirected ones came to {climb.untargeted:.3g} of a bound, the "
        f"climb to {nearest:.3g}; {len(climb.failed)} failed",
        highlight=False,
    )


def _kept(climb: Climb, hard: Hardest) -> KeptCase:
    from harness.campaign.corpus import KeptCase

    failing = climb.failed.get(hard.case.case_id)
    settings = (failing or hard).settings
    return KeptCase(case=hard.case, settings=settings, failed=failing is not None)
