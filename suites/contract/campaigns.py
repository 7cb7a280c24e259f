"""A small real campaign with something wrong in it. Light to import, for a driver to start."""

from __future__ import annotations

from pathlib import Path

from harness.campaign.local import LocalCampaign
from harness.campaign.spec import RunSpec
from harness.cli.run import manifest_of
from harness.record import EndRecord, Record, RunWriter, read_records

PLUGINS = "suites.contract.misbehaving"


def campaign(
    folder: Path, plugin: str, *names: str, profile: str = "smoke", axis: str = "async"
) -> tuple[EndRecord, list[Record]]:
    """Run one small case on each checkpoint along one axis, with a plug-in in every engine."""
    cases = folder / "cases.jsonl"
    cases.write_text('{"task": "embed", "prompts": ["one", "two", "three"]}\n')
    spec = RunSpec(
        profile=profile,
        seed=0,
        checkpoints=names,
        axes=(axis,),
        plants=(f"{PLUGINS}:{plugin}",),
        cases_file=str(cases),
    )
    writer = RunWriter(folder / "run", manifest_of(spec, "run", [], (plugin,)))
    end = LocalCampaign(spec, writer, workers=1).run()
    writer.close()
    return end, list(read_records(folder / "run"))
