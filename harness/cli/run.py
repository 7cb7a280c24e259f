"""`parity run`: the main job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.axes import ALL_AXES
from harness.campaign.executors import EXECUTORS, Executor, executor_named
from harness.campaign.local import LocalCampaign
from harness.campaign.profile import PROFILES
from harness.campaign.resume import CannotResumeError, unfinished
from harness.campaign.spec import RunSpec
from harness.cli.bisect import bisect_code
from harness.cli.canary import compare
from harness.cli.diff import since_the_last_run
from harness.cli.errors import UsageError
from harness.cli.folders import new_run_id, run_folder, runs_root
from harness.cli.known_first import replay_known, with_known
from harness.cli.options import SIZES, options_of, sizes_of
from harness.cli.progress import ProgressWatcher
from harness.cli.request import build_spec, in_cells, manifest_of
from harness.findings import Finder
from harness.record import NoticeRecord, Record, ReplayRecord, RunWriter
from reports.html import render
from reports.load import load_run
from reports.redaction import redacted
from reports.terminal import print_summary


def run(
    context: typer.Context,
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
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; by default 2, and 1 for a system")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="Where the workers are: " + ", ".join(EXECUTORS))
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT of a running Ray, for --executor ray; default: one of its own"
        ),
    ] = None,
    batch_invariant: Annotated[
        bool, typer.Option(help="Fix every reduction order; chunk is then held to 0 ulp")
    ] = False,
    system: Annotated[
        str | None, typer.Option(help="System under test; `parity systems` lists them")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A server to judge: --system http --set url=URL")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, passed through to the system; may be repeated"),
    ] = None,
    dtype: Annotated[str, typer.Option(help="dtype the system computes in")] = "float32",
    baseline: Annotated[
        str | None, typer.Option(help="Compare two deployments: a TOML file or a URL, and ...")
    ] = None,
    candidate: Annotated[str | None, typer.Option(help="... another, on the --cases")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Of two deployments: a score that you act on")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(help="Of two deployments: most they may differ; default: as measured"),
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(help="lattice: every cell; alone: the baseline, each switch alone, and all"),
    ] = None,
    cover: Annotated[
        int | None,
        typer.Option(
            min=1, help="All axes, or those of --only, by few cells: any so many values together"
        ),
    ] = None,
    production: Annotated[
        str | None,
        typer.Option(help="AXIS=VALUE,...: this cell, and it with one axis at a time at rest"),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Keep prompts out of records and report")
    ] = False,
    bisect: Annotated[
        bool,
        typer.Option(
            "--bisect", help="Exit codes for `git bisect run`: 0, 1, and 125 for the rest"
        ),
    ] = False,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            help="NAME=N instead of the profile's: " + ", ".join(SIZES) + "; may be repeated",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.0, help="Begin no case later than this; --resume goes on"),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Rules file whose known findings are replayed first; default: parity.toml"
        ),
    ] = None,
    no_known: Annotated[
        bool, typer.Option("--no-known", help="Replay neither known findings nor the corpus")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on with this run (id or folder), which was killed or out of time"),
    ] = None,
) -> None:
    """Run cases through every cell of the lattice, judge them and write the report.

    What is known comes first: the kept cases of the ledger and the corpus of `parity search`. Not
    with --cases and --bisect, which ask for one thing.
    """
    console = Console()
    where = Where(executor=executor, address=ray_address, workers=workers)
    if resume is not None:
        _refuse_others(context, resume)
        code = _go_on(resume, console, where=where, minutes=minutes)
        raise typer.Exit(bisect_code(code) if bisect else code)
    if baseline is not None or candidate is not None:
        if executor != "local":
            raise UsageError(
                f"--executor {executor} is for runs through the lattice; two deployments are "
                "compared from this process: leave it out"
            )
        code = compare(
            baseline=baseline,
            candidate=candidate,
            cases=cases,
            model=model[0] if model else None,
            within=within,
            threshold=threshold,
            redact=redact,
            folder=runs_root() / new_run_id(),
            console=console,
        )
        raise typer.Exit(bisect_code(code) if bisect else code)
    spec, notices = build_spec(
        profile=profile,
        only=only,
        models=model or [],
        cases=cases,
        plants=plant or [],
        seed=seed,
        batch_invariant=batch_invariant,
        system=system or ("engine" if url is None else "http"),
        options=options_of(set_ or []) | ({} if url is None else {"url": url}),
        dtype=dtype,
        sizes=sizes_of(size or []),
        cells=cells or "",
        redact=redact,
    )
    spec = in_cells(spec, only=only, cover=cover, production=production)
    if cases is None and not bisect and not no_known:
        spec = with_known(spec, rules)
    elif rules is not None:
        raise UsageError(
            f"--rules {rules} says what is replayed first; --cases, --bisect and --no-known replay "
            "nothing: leave one of them out"
        )
    with closing(where.started(spec)) as workplace:  # first, so that a refusal leaves no run behind
        folder = runs_root() / new_run_id()
        writer = RunWriter(folder, manifest_of(spec, folder.name, notices, tuple(plant or ())))
        for notice in notices:
            console.print(f"NOTICE: {notice}", style="bold yellow", highlight=False)
            writer.append(NoticeRecord(text=notice))
        console.print(f"run {folder.name}  seed {seed}  profile {profile}", highlight=False)
        known = replay_known(spec, writer, console)
        code = campaign(
            spec,
            writer,
            console,
            workers=workers,
            minutes=minutes,
            known=known,
            executor=workplace,
        )
    raise typer.Exit(bisect_code(code) if bisect else code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where the workers are to be, as asked for."""

    executor: str
    address: str | None
    workers: int | None

    def started(self, spec: RunSpec) -> Executor:
        """The executor, ready; close it. ExecutorError where it cannot be had."""
        return executor_named(
            self.executor, workers=_num_workers(spec, self.workers), address=self.address
        )


def _num_workers(spec: RunSpec, asked: int | None) -> int:
    return asked or (2 if spec.system == "engine" else 1)


def campaign(
    spec: RunSpec,
    writer: RunWriter,
    console: Console,
    *,
    workers: int | None,
    minutes: float | None,
    kept: Mapping[str, Sequence[Record]] | None = None,
    known: Sequence[ReplayRecord] = (),
    executor: Executor | None = None,
) -> int:
    """Run, report, summarise; the exit code. `known`: what was replayed before."""
    with ProgressWatcher(spec, console) as watcher:
        end = LocalCampaign(
            spec,
            writer,
            workers=_num_workers(spec, workers),
            watcher=watcher,
            find=Finder(spec, writer.folder).find,
            kept=kept,
            minutes=minutes,
            still_failing=any(record.fails_now for record in known),
            executor=executor,
        ).run()
    writer.close()
    target = writer.folder / "report.html"
    loaded = load_run(writer.folder)
    before = since_the_last_run(writer.folder, loaded, prepare=redacted if spec.redact else None)
    render(loaded, target, before)
    print_summary(loaded, console)
    console.print(f"report: {target.resolve()}", soft_wrap=True, highlight=False)
    return end.exit_code


ON_RESUMING = ("resume", "workers", "executor", "ray_address", "minutes", "bisect")


def _refuse_others(context: typer.Context, run: str) -> None:
    given = [
        name
        for name in context.params
        if name not in ON_RESUMING and _source(context, name) == "COMMANDLINE"
    ]
    if given:
        options = ", ".join(f"--{name.strip('_').replace('_', '-')}" for name in given)
        raise UsageError(
            f"--resume {run} goes on with what that run was asked; {options} would change it. "
            "Leave them out (--workers, --executor, --ray-address, --minutes and --bisect may be "
            "given), or start a new run"
        )


def _source(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    return "" if source is None else source.name


def _go_on(run: str, console: Console, *, where: Where, minutes: float | None) -> int:
    folder = run_folder(run)
    try:
        left = unfinished(folder)
    except CannotResumeError as error:
        raise UsageError(str(error)) from error
    with closing(where.started(left.spec)) as workplace:
        told = sum(len(ids) for ids in left.done.values())
        console.print(f"run {folder.name}: going on after {told} finished cases", highlight=False)
        writer = RunWriter.reopen(folder, left.manifest, left.records())
        known = replay_known(left.spec, writer, console, told=left.replays)
        return campaign(
            left.spec,
            writer,
            console,
            workers=where.workers,
            minutes=minutes,
            kept=left.kept,
            known=known,
            executor=workplace,
        )
