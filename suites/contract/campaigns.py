"""A small real campaign with something wrong in it. Light to import, for a driver to start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.campaign.executors import Executor
from harness.campaign.local import LocalCampaign
from harness.campaign.spec import RunSpec
from harness.cli.request import manifest_of
from harness.record import EndRecord, Record, RunWriter, read_records

PLUGINS = "suites.contract.misbehaving"
ONE_CASE = '{"task": "embed", "prompts": ["one", "two", "three"]}'


def campaign(
    folder: Path,
    plugin: str,
    *names: str,
    profile: str = "smoke",
    axis: str = "async",
    cases: Sequence[str] = (ONE_CASE,),
    shards: int = 1,
    workers: int = 1,
    executor: Executor | None = None,
) -> tuple[EndRecord, list[Record]]:
    """Run a few cases on each checkpoint along one axis, with a plug-in in every engine."""
    file = folder / "cases.jsonl"
    file.write_text("".join(f"{case}\n" for case in cases))
    spec = RunSpec(
        profile=profile,
        seed=0,
        checkpoints=names,
        axes=(axis,),
        plants=(f"{PLUGINS}:{plugin}",),
        cases_file=str(file),
        sizes={"shards": shards},
    )
    writer = RunWriter(folder / "run", manifest_of(spec, "run", [], (plugin,)))
    end = LocalCampaign(spec, writer, workers=workers, executor=executor).run()
    writer.close()
    return end, list(read_records(folder / "run"))
