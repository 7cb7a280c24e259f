"""`parity axes`: what may be run differently, and how much of it each profile runs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def axes(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program")] = False,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="What each family can be run with: docs/capabilities.md"),
    ] = False,
) -> None:
    """List the axes of the lattice, the profiles, and the settings cases rotate through."""
    if markdown:
        typer.echo(_capabilities(), nl=False)
    elif as_json:
        typer.echo(json.dumps(_document(), indent=1, ensure_ascii=False))
    else:
        _print_tables()


def _capabilities() -> str:
    from harness.checkpoints.catalogue import CHECKPOINTS
    from harness.systems.capabilities import Capability, markdown

    generated = [name for name, known in CHECKPOINTS.items() if known.origin == "generated"]
    return markdown([Capability.of("engine", name) for name in generated])


def _document() -> dict[str, Any]:
    from dataclasses import asdict

    from harness.axes import ALL_AXES
    from harness.campaign.profile import PROFILES
    from harness.record import to_json

    return {
        "axes": [to_json(axis.info) for axis in ALL_AXES.values()],
        "profiles": [
            {**asdict(profile), "settings": [dict(chosen) for chosen in profile.settings]}
            for profile in PROFILES.values()
        ],
    }


def _print_tables() -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from harness.axes import ALL_AXES
    from harness.campaign.profile import PROFILES

    console = Console()

    def table(title: str, *columns: str) -> Table:
        made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            made.add_column(column, overflow="fold")
        return made

    switches = table("Axes (baseline value first)", "axis", "values", "held to", "meaning")
    for axis in ALL_AXES.values():
        values = (axis.baseline, *(value for value in axis.values if value != axis.baseline))
        switches.add_row(axis.name, ", ".join(values), str(axis.tier), axis.meaning)
    console.print(switches)
    amounts = table(
        "Profiles", "profile", "checkpoint", "cases", "chunk", "longest", "as processes"
    )
    settings = table("Settings, rotated over a profile's cases", "profile", "streams", "inputs")
    rotations: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for profile in PROFILES.values():
        for plan in profile.checkpoints:
            amounts.add_row(
                profile.name,
                plan.name,
                str(plan.cases),
                str(plan.chunk),
                str(plan.max_model_len),
                str(plan.process_cases),
            )
        rotation = tuple((chosen["stream_policy"], chosen["inputs"]) for chosen in profile.settings)
        rotations.setdefault(rotation, []).append(profile.name)
    for rotation, names in rotations.items():
        for streams, inputs in rotation:
            settings.add_row(", ".join(names), streams, inputs)
    console.print(amounts)
    for profile in PROFILES.values():
        console.print(f"{profile.name}: {profile.meaning}", highlight=False)
    console.print()
    console.print(settings)
