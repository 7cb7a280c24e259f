"""`parity scenario`: a user's story, told by a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

from harness.cli.errors import UsageError
from harness.scenarios import SCENARIOS

NOT_SEEN = 3


def scenario(
    *,
    story: Annotated[str | None, typer.Argument(help="The story; none: list them")] = None,
    seed: Annotated[int, typer.Option(help="Everything drawn follows from it")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes")] = 2,
) -> None:
    """Tell what a user met: plant its faults, run the ordinary cases of smoke, show what is found.

    Ends with 0 when the story was seen, 3 when it was not, 2 for an error.
    """
    if story is None:
        for some in SCENARIOS.values():
            typer.echo(f"{some.name}: {some.title} ({', '.join(some.sources)})")
        return
    if story not in SCENARIOS:
        raise UsageError(f"unknown scenario {story!r}; valid: {', '.join(SCENARIOS)}")
    from harness.cli.diff import since_the_last_run
    from harness.cli.folders import new_run_id, runs_root
    from harness.cli.plants import plugins_of
    from harness.cli.request import build_spec, manifest_of
    from harness.cli.run import campaign
    from harness.record import RunWriter
    from reports.load import load_run
    from reports.terminal import print_changes
    from reports.view.page import build_page

    chosen, console, code, folder = SCENARIOS[story], Console(), 0, runs_root()
    spec, _ = build_spec(
        profile="smoke",
        only=",".join(chosen.axes),
        models=[chosen.checkpoint],
        cases=None,
        plants=[],
        seed=seed,
        batch_invariant=False,
    )
    for plants in ((), chosen.plants) if chosen.upgrade else (chosen.plants,):
        asked, folder = replace(spec, plants=plugins_of(plants)), runs_root() / new_run_id()
        manifest = manifest_of(asked, folder.name, [], plants)
        if plants:
            command = ("parity", "scenario", story, "--seed", str(seed))
            manifest = replace(manifest, story=chosen.info, command=command)
        console.print(
            f"run {folder.name}: {'planted' if plants else 'the version before'}", highlight=False
        )
        writer = RunWriter(folder, manifest)
        code = campaign(asked, writer, console, workers=workers, minutes=None)
    loaded = load_run(folder)
    changed = since_the_last_run(folder, loaded) if chosen.upgrade else None
    if changed is not None:
        print_changes(changed, console)
    told = build_page(loaded).story
    seen = told is not None and told.finding is not None
    raise typer.Exit(code if code not in (0, 1) else 0 if seen else NOT_SEEN)
