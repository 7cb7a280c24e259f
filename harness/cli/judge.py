"""`parity judge`: a recorded run under other tolerances, without running it again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harness.campaign.rejudge import Need, Rejudged


def judge(
    *,
    run: Annotated[
        str | None, typer.Argument(help="Run id or folder; default: the newest run")
    ] = None,
    tolerance: Annotated[
        Path | None,
        typer.Option(help="TOML or JSON of own tolerances; default: the project's as they are now"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for a program")] = False,
) -> None:
    """Judge a run's records again and say the least tolerance under which it would pass.

    The verdicts go into a folder `judged/ID` beside the run's records, which stay as they are;
    `parity report` reads it like any run.
    """
    from harness.campaign.rejudge import rejudge
    from harness.cli.folders import run_folder
    from harness.judge.rules import Rules, read_rules

    rules = Rules() if tolerance is None else read_rules(tolerance)
    folder = run_folder(run)
    found = rejudge(folder, rules)
    target = _write(folder, found, tolerance)
    if as_json:
        _print_json(found, target)
    else:
        _print(found, target)
    raise typer.Exit(found.exit_code)


def _write(folder: Path, found: Rejudged, tolerance: Path | None) -> Path:
    """The run's records with the new verdicts in the old ones' place, in a folder of their own."""
    from dataclasses import replace

    from harness.cli.folders import new_run_id
    from harness.record import (
        DriftRecord,
        EndRecord,
        FindingRecord,
        NoticeRecord,
        PairRecord,
        PowerRecord,
        RunWriter,
    )

    name = new_run_id()
    manifest = replace(
        found.manifest,
        run_id=f"{found.manifest.run_id}/judged/{name}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=("parity", "judge", found.manifest.run_id)
        + (() if tolerance is None else ("--tolerance", str(tolerance))),
    )
    writer = RunWriter(folder / "judged" / name, manifest)
    text = "judged again" + ("" if tolerance is None else f" with the tolerances of {tolerance}")
    writer.append(
        NoticeRecord(
            text=f"{text}; nothing was run",
            detail="" if tolerance is None else tolerance.read_text(encoding="utf-8"),
        )
    )
    # Findings explain the old verdicts.
    old = (PairRecord, PowerRecord, DriftRecord, EndRecord, FindingRecord)
    for record in (*(r for r in found.records if not isinstance(r, old)), *found.judged):
        writer.append(record)
    writer.append(
        EndRecord(
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            exit_code=found.exit_code,
            counts=dict(found.counts),
            seconds=0.0,
        )
    )
    writer.close()
    return writer.folder


def _print(found: Rejudged, target: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from harness.record import DriftRecord, Outcome

    console = Console()
    counts = found.counts
    console.print(
        f"{sum(counts.values())} pairs: " + ", ".join(f"{n} {o}" for o, n in counts.items()),
        highlight=False,
    )
    console.print(f"{len(found.changed)} came out differently", highlight=False)
    for old, new in found.changed[:10]:
        console.print(
            f"  {new.pair_id} {new.checkpoint} {new.task} {new.tier}: "
            f"{old.outcome} -> {new.outcome} {new.reason}",
            highlight=False,
            markup=False,
        )
    table = Table("checkpoint", "rule", "kind", "tokens", "pairs", "least that passes", "in force")
    for need in _tightest(found.needs):
        table.add_row(
            need.checkpoint,
            need.rule,
            str(need.kind),
            need.bucket or "any",
            str(need.pairs),
            f"{need.needed:.3g}",
            f"{need.in_force:.3g}" + (" exceeded" if need.needed > need.in_force else ""),
        )
    console.print(table)
    for record in found.judged:
        if isinstance(record, DriftRecord) and record.outcome is Outcome.FAIL:
            console.print(record.reason, highlight=False)
    if found.beyond:
        console.print(f"{len(found.beyond)} fail at any tolerance, among them:", highlight=False)
        for pair in found.beyond[:5]:
            console.print(f"  {pair.pair_id} {pair.tier}: {pair.reason}", markup=False)
    console.print(f"verdicts: {target.resolve()}", soft_wrap=True, highlight=False)


def _tightest(needs: Sequence[Need]) -> list[Need]:
    return sorted(needs, key=lambda n: (n.checkpoint, n.rule, str(n.kind), n.bucket))


def _print_json(found: Rejudged, target: Path) -> None:
    import json

    from harness.record import to_json

    document = {
        "run_id": found.manifest.run_id,
        "verdicts": str(target.resolve()),
        "counts": dict(found.counts),
        "changed": [
            {"pair_id": new.pair_id, "before": str(old.outcome), "after": str(new.outcome)}
            for old, new in found.changed
        ],
        "needs": [to_json(need) for need in _tightest(found.needs)],
        "beyond": [pair.pair_id for pair in found.beyond],
    }
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
