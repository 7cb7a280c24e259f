"""`parity rivals`: what other projects' rules would have said of the same outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_HEAD = """# Rival rules on the same outputs

Written by `parity rivals`, from recorded runs; do not edit. A *false alarm* is a pair of runs of
the engine as it is that a rule calls different. *Changed pairs* are those of which a planted fault
changed exactly one side, by the digests of a clean run with the same seed, whatever any rule says;
a rule *kills* a fault when it calls at least one of them different. The happens-before check is
left out: it sees races that have not changed a number yet.

"""


def rivals(
    *,
    runs: Annotated[
        list[str], typer.Argument(help="A clean run, and runs of the same seed with `--plant`")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Markdown file to write; default: print only")
    ] = None,
) -> None:
    """Compare our verdicts with fixed rules on recorded outputs; nothing is run.

    Exit code 1 when a rival has no more false alarms and no fewer kills, and is better in one; 3
    when one side of that was not measured.
    """
    from harness.campaign.rivalry import rivalry, table
    from harness.cli.folders import run_folder
    from harness.record import read_manifest

    folders = [run_folder(name) for name in runs]
    found = rivalry(folders)
    shown = table(found)
    typer.echo(shown, nl=False)
    dominated = [f"{d.dtype}: {', '.join(d.dominating)}" for d in found if d.dominating]
    unmeasured = [d.dtype for d in found if not (d.changed and d.legitimate)]
    verdict = (
        f"Nothing is shown for {', '.join(unmeasured) or 'any dtype'}: it takes a clean run and "
        "one of the same seed whose fault changed an output."
        if unmeasured or not found
        else f"Better than ours in one respect and no worse in the other: {'; '.join(dominated)}."
        if dominated
        else "No rule has both no more false alarms and no fewer kills than ours, and one better."
    )
    typer.echo(verdict)
    if out is not None:
        manifests = [read_manifest(folder) for folder in folders]
        commands = "\n".join(
            f"    {' '.join(m.command)}"
            for m in sorted(manifests, key=lambda m: (m.profile, m.seed, m.plants))
        )
        out.write_text(
            f"{_HEAD}{shown}\n{verdict}\n\nMeasured on the records of:\n\n{commands}\n",
            encoding="utf-8",
        )
    raise typer.Exit(3 if unmeasured or not found else 1 if dominated else 0)
