"""What was run and on what: command, seed, settings, environment, models, axes, time."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from harness.record import AxisInfo, CheckpointInfo
from reports.load import Run
from reports.view.text import flat, seconds, shortened

MAX_VALUE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One use of the run's time."""

    name: str
    seconds: float
    text: str
    share: float
    """Of the whole run, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    run_id: str
    command: str
    seed: int
    profile: str
    commit: str
    created: str
    finished: str
    duration: str
    plants: tuple[str, ...]
    notices: tuple[str, ...]
    counts: tuple[str, ...]
    """Notices of what a covering array's cells cover: told from what was judged as well, so they
    belong with the details and not above the verdict."""
    settings: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    checkpoints: tuple[CheckpointInfo, ...]
    axes: tuple[AxisInfo, ...]
    phases: tuple[Phase, ...]


def setup(run: Run) -> Setup:
    manifest, end = run.manifest, run.end
    told = tuple(dict.fromkeys(map(str, run.notices)))
    counts = tuple(text for text in told if _is_count(text, run))
    return Setup(
        run_id=manifest.run_id,
        command=shlex.join(map(str, manifest.command)),
        seed=manifest.seed,
        profile=manifest.profile,
        commit=manifest.commit,
        created=manifest.created,
        finished=end.finished if end else "",
        duration=seconds(end.seconds) if end else "",
        plants=tuple(map(str, manifest.plants)),
        notices=tuple(text for text in told if text not in counts),
        counts=counts,
        settings=_rows(flat(manifest.settings)),
        environment=_rows(flat(manifest.environment)),
        checkpoints=manifest.checkpoints,
        axes=manifest.axes,
        phases=_phases(run),
    )


def _is_count(text: str, run: Run) -> bool:
    """Whether a notice counts an array that is declared, so that `How much was tried` has it."""
    return any(
        record.combinations
        and text.startswith(f"{record.checkpoint}: {record.strength}-way coverage of ")
        for record in run.declared
    )


def _rows(rows: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((k, shortened(v, MAX_VALUE_CHARACTERS)) for k, v in sorted(rows))


def _phases(run: Run) -> tuple[Phase, ...]:
    if run.end is None or run.end.seconds <= 0:
        return ()
    ordered = sorted(run.end.phases.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Phase(
            name=name,
            seconds=spent,
            text=seconds(spent),
            share=min(1.0, max(0.0, spent / run.end.seconds)),
        )
        for name, spent in ordered
    )
