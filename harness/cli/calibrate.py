"""`parity calibrate`: measure what tolerances rest on."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from harness.campaign.spec import RunSpec
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.errors import UsageError
from harness.judge.tolerance import CALIBRATION


def calibrate(
    *,
    model: Annotated[list[str], typer.Option(help="Checkpoint to measure; may be repeated")],
    seed: Annotated[int, typer.Option(help="Prompts are drawn from it")] = 1,
    out: Annotated[Path, typer.Option(help="Calibration file to update")] = CALIBRATION,
) -> None:
    """Measure the baseline's own error against float64 and store its 99.9th percentile."""
    from harness.campaign.calibrate import baseline_errors
    from harness.campaign.workbench import Workbench

    unknown = sorted(set(model) - set(CHECKPOINTS))
    if unknown:
        raise UsageError(f"unknown model {', '.join(unknown)}; valid: {', '.join(CHECKPOINTS)}")
    data = json.loads(out.read_text(encoding="utf-8"))
    for name in model:
        spec = RunSpec(profile="pr", seed=seed, checkpoints=(name,), axes=())
        command = f"parity calibrate --model {name} --seed {seed}"
        with TemporaryDirectory() as folder:
            bench = Workbench(spec, name, Path(folder))
            try:
                found = baseline_errors(bench, seed=seed, command=command)
            finally:
                bench.close()
        kept = [e for e in data.get("baseline_errors", []) if e["checkpoint"] != name]
        data["baseline_errors"] = kept + [
            {
                **key._asdict(),
                "quantile": float(f"{null.quantile:.4g}"),
                "count": null.count,
                "seed": null.seed,
                "command": null.command,
            }
            for key, null in sorted(found.items())
        ]
        for key, null in sorted(found.items()):
            typer.echo(f"{name} {key.kind} {key.bucket}: {null.quantile:.3g} of {null.count}")
    part = out.with_suffix(".part")
    part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    part.replace(out)
