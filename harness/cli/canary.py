"""`parity run --baseline A --candidate B`: two deployments on the user's own traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.cli.errors import UsageError
from harness.record import (
    EndRecord,
    NoticeRecord,
    Outcome,
    PairRecord,
    RunManifest,
    RunWriter,
    exit_code,
)

ROWS = 10
"""Cases listed, the farthest first."""


def compare(
    *,
    baseline: str | None,
    candidate: str | None,
    cases: Path | None,
    model: str | None,
    within: float | None,
    threshold: float | None,
    redact: bool,
    folder: Path,
    console: Console,
) -> int:
    """Run, record and tell; returns the exit code. Raises UsageError."""
    if baseline is None or candidate is None or cases is None:
        raise UsageError(
            "two deployments are compared with --baseline, --candidate (each a TOML file or a URL) "
            "and --cases FILE, the traffic; got "
            f"baseline={baseline}, candidate={candidate}, cases={cases}"
        )
    from harness.axes import AXES
    from harness.campaign.canary import Canary
    from harness.campaign.corpus import read_cases
    from harness.campaign.deployment import read_deployment
    from harness.campaign.manifest import checkpoint_info, commit, environment
    from harness.campaign.outputs import OutputStore
    from harness.campaign.redact import Redactor

    first, other = (read_deployment(p, model=model) for p in (baseline, candidate))
    traffic = read_cases(cases)
    command = ["parity", "run", "--baseline", baseline, "--candidate", candidate]
    command += ["--cases", str(cases)]
    for name, value in (("--model", model), ("--within", within), ("--threshold", threshold)):
        command += [] if value is None else [name, str(value)]
    writer = RunWriter(
        folder,
        RunManifest(
            run_id=folder.name,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=tuple([*command, "--redact"] if redact else command),
            seed=0,
            profile="deployments",
            settings={"baseline": first.name, "candidate": other.name},
            environment=environment(),
            axes=tuple(axis.info for axis in AXES.values()),
            checkpoints=(checkpoint_info(first.model),),
            commit=commit(),
        ),
    )
    console.print(
        f"run {folder.name}: {first.name} against {other.name}", highlight=False, markup=False
    )
    hide = Redactor() if redact else None
    began = datetime.now(UTC)
    canary = Canary(
        baseline=first,
        candidate=other,
        store=OutputStore(folder),
        within=within,
        threshold=threshold,
    )
    pairs = []
    for record in canary.run(traffic):
        told = record if hide is None else hide(record)
        writer.append(told)
        if isinstance(told, PairRecord):
            pairs.append(told)
    counts = Counter(str(pair.outcome) for pair in pairs)
    code = exit_code(counts)
    if redact:
        writer.append(NoticeRecord(text="prompts are kept out of this record (--redact)"))
    ended = datetime.now(UTC)
    writer.append(
        EndRecord(
            finished=ended.isoformat(timespec="seconds"),
            exit_code=code,
            counts=dict(counts),
            seconds=(ended - began).total_seconds(),
        )
    )
    writer.close()
    _tell(pairs, counts, console)
    return code


def _tell(pairs: Sequence[PairRecord], counts: Counter[str], console: Console) -> None:
    console.print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    table = Table(title="farthest first")
    for column in ("case", "task", "outcome", "distance", "bound", "row", "crossed", "reason"):
        table.add_column(column, overflow="fold")
    for pair in sorted(pairs, key=_distance, reverse=True)[:ROWS]:
        values = {m.metric: m for m in pair.measurements}
        head = pair.measurements[0] if pair.measurements else None
        crossed = values.get("crossed_threshold")
        table.add_row(
            pair.case_id,
            pair.task,
            str(pair.outcome),
            "" if head is None else f"{head.value:.3g}",
            "" if head is None or head.bound is None else f"{head.bound:.3g}",
            "" if pair.worst_prompt is None else str(pair.worst_prompt),
            "" if crossed is None else f"{crossed.value:.0f}",
            pair.reason,
        )
    console.print(table)
    total = sum(
        m.value for pair in pairs for m in pair.measurements if m.metric == "crossed_threshold"
    )
    if any(m.metric == "crossed_threshold" for p in pairs for m in p.measurements):
        console.print(f"{total:.0f} scores land on the other side of the threshold")


def _distance(pair: PairRecord) -> float:
    if pair.outcome is Outcome.ERROR or not pair.measurements:
        return float("inf")
    return pair.measurements[0].value
