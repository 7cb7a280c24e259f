"""`parity rivals`: what other projects' rules would have said of the same outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harness.campaign.rivalry import Rivalry

_HEAD = """# Rival rules on the same outputs

Written by `parity faults --rules FILE` or `parity rivals RUN`; do not edit. A *false alarm* is a
pair of runs of the engine as it is, or with a control in it (a legitimate difference of
arithmetic), that a rule calls different. *Changed pairs* are those of which a planted fault changed
exactly one side, by the digests of the engine as it is on the same case, whatever any rule says; a
rule *kills* a fault when it calls at least one of them different. The happens-before check is left
out: it sees races that have not changed a number yet.

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
    typer.echo(table(found), nl=False)
    typer.echo(verdict(found))
    if out is not None:
        manifests = sorted(
            (read_manifest(folder) for folder in folders),
            key=lambda m: (m.profile, m.seed, m.plants),
        )
        out.write_text(document(found, [" ".join(m.command) for m in manifests]), encoding="utf-8")
    unmeasured = not found or any(not d.measured for d in found)
    raise typer.Exit(3 if unmeasured else 1 if any(d.dominating for d in found) else 0)


def verdict(found: Sequence[Rivalry]) -> str:
    """One sentence: whether a rule is better than ours in one respect, no worse in the other."""
    dominated = [f"{d.dtype}: {', '.join(d.dominating)}" for d in found if d.dominating]
    unmeasured = [d.dtype for d in found if not d.measured]
    if unmeasured or not found:
        return (
            f"Nothing is shown for {', '.join(unmeasured) or 'any dtype'}: it takes the engine as "
            "it is and one with a fault that changed an output, on the same cases."
        )
    if dominated:
        return f"Better than ours in one respect and no worse in the other: {'; '.join(dominated)}."
    return "No rule has both no more false alarms and no fewer kills than ours, and one better."


def document(found: Sequence[Rivalry], commands: Sequence[str]) -> str:
    """The table as a Markdown file, with what it was measured by."""
    from harness.campaign.rivalry import table

    told = "\n".join(f"    {command}" for command in commands)
    return f"{_HEAD}{table(found)}\n{verdict(found)}\n\nMeasured by:\n\n{told}\n"
