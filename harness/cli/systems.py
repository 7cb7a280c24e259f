"""`parity systems`: the systems that can be judged, and whether one keeps to the protocol."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from harness.cli.options import options_of

app = typer.Typer(help="The systems that can be judged.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def systems(
    context: typer.Context,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program")] = False,
) -> None:
    """List the names that `--system` takes."""
    if context.invoked_subcommand is not None:
        return
    from harness.systems.table import SYSTEMS, names

    found = {name: SYSTEMS.get(name, "an installed package") for name in names()}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, place in found.items():
        typer.echo(f"{name:<10} {place}")
    typer.echo("FILE.py:FACTORY is a system of your own; docs/your-own-engine.md has a template")


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="A system, or FILE.py:FACTORY")],
    *,
    model: Annotated[str, typer.Option(help="Checkpoint of the catalogue")] = "tiny-qwen3",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE, an option of the system's own")
    ] = None,
    url: Annotated[str | None, typer.Option(help="The server, for http: --set url=URL")] = None,
    dtype: Annotated[str, typer.Option(help="dtype the system computes in")] = "float32",
    chunk: Annotated[int, typer.Option(min=2, help="Token budget of a chunked step")] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program")] = False,
) -> None:
    """Run the conformance check: 0 it conforms, 1 something is broken, 3 a switch is vacuous."""
    from rich.console import Console

    from harness.checkpoints.catalogue import checkpoint, path_of
    from harness.checkpoints.sizes import sizes_of
    from harness.systems.base import Assignment
    from harness.systems.conformance import Conformance, exit_code
    from harness.systems.table import factory

    folder = path_of(model)
    longest = max(192, 6 * chunk)  # a reranker's template alone takes more than a hundred tokens
    system = factory(name)(
        Assignment(
            checkpoint=checkpoint(model),
            folder=folder,
            chunk=chunk,
            max_num_seqs=2,
            max_model_len=longest,
            dtype=dtype,
            options=options_of(set_ or []) | ({} if url is None else {"url": url}),
        )
    )
    console = Console(stderr=as_json)
    console.print(f"{name} on {model}: {dict(system.about())}", markup=False, highlight=False)
    made = []
    try:
        for found in Conformance(
            system=system,
            checkpoint=model,
            vocabulary=sizes_of(folder).vocab_size,
            chunk=chunk,
            max_model_len=longest,
        ).run():
            made.append(found)
            line = f"{found.standing:<8} {found.name}" + (
                f": {found.detail}" if found.detail else ""
            )
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    finally:
        system.close()
    if as_json:
        typer.echo(json.dumps([asdict(found) for found in made]))
    raise typer.Exit(exit_code(made))
