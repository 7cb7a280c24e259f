"""`parity calibrate`: measure what tolerances rest on."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from harness.campaign.spec import RunSpec
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.errors import UsageError
from harness.cli.folders import home


def calibrate(
    *,
    model: Annotated[list[str], typer.Option(help="Checkpoint to measure; may be repeated")],
    seed: Annotated[int, typer.Option(help="Prompts are drawn from it")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: proposals/ID.json beside the runs")
    ] = None,
) -> None:
    """Measure the baseline's error against float64, and how far known-good runs are apart.

    Writes a proposal; `parity approve FILE` takes it into the calibration.
    """
    from harness.campaign.calibrate import measure
    from harness.campaign.workbench import Workbench
    from harness.judge.calibration import Entry, text

    unknown = sorted(set(model) - set(CHECKPOINTS))
    if unknown:
        raise UsageError(f"unknown model {', '.join(unknown)}; valid: {', '.join(CHECKPOINTS)}")
    entries: list[Entry] = []
    for name in model:
        spec = RunSpec(profile="pr", seed=seed, checkpoints=(name,), axes=())
        command = f"parity calibrate --model {name} --seed {seed}"
        with TemporaryDirectory() as folder:
            bench = Workbench(spec, name, Path(folder))
            try:
                found = measure(bench, seed=seed, command=command)
            finally:
                bench.close()
        for entry in found:
            key, null = entry.key, entry.null
            typer.echo(
                f"{name} {key.kind} {key.bucket} {entry.pairs}: {null.quantile:.3g} of {null.count}"
            )
        entries += found
    target = out or home() / "proposals" / f"{'-'.join(model)}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text(entries), encoding="utf-8")
    typer.echo(f"proposal: {target}; take it in with `parity approve {target}`")
