"""Can the tool be trusted? What the switches really did, and whether outputs could have moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.record import ExecutionRecord, Json
from reports.load import Run
from reports.view.margins import severity
from reports.view.text import number, plain, shortened

WITNESSED = {
    "max_chunks": "chunks of the longest-split prompt",
    "compiled_calls": "compiled calls",
    "eager_stages": "stages run outside compiled code",
    "lookahead": "steps submitted ahead",
    "active_ranks": "ranks that worked",
}
"""Derived counts of a witness, in reading order, with what each means."""
MAX_SAMPLES = 12
MAX_HAZARDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessRow:
    """What runs with one axis value did: lowest and highest of each count, from the mechanism."""

    axis: str
    value: str
    baseline: bool
    runs: int
    ranges: tuple[str, ...]
    processes: int
    """Distinct process ids seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run over several processes, as attested by its ranks."""

    cell: str
    executor: str
    pids: tuple[str, ...]
    threads: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRow:
    """How far outputs moved when inputs did, over what blindness would look like."""

    checkpoint: str
    cases: int
    blind: int
    least: str
    median: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    columns: tuple[str, ...]
    witnesses: tuple[WitnessRow, ...]
    samples: tuple[Sample, ...]
    more_samples: int
    powers: tuple[PowerRow, ...]
    hazards: tuple[str, ...]
    more_hazards: int
    executions: int
    broken: int
    """Executions that ended in an error."""
    processes: int


def trust(run: Run) -> Trust:
    executions = list(run.executions.values())
    columns = tuple(k for k in WITNESSED if any(k in _derived(e) for e in executions))
    hazards = tuple(
        dict.fromkeys(plain(h) for e in executions for h in _list(_derived(e).get("hazards")))
    )
    spread = [e for e in executions if len(_pids(e)) > 1]
    # One sample per cell: the same cell's later runs use the same processes.
    samples = {(e.checkpoint, tuple(e.cell.items()), tuple(_pids(e))): e for e in reversed(spread)}
    chosen = list(reversed(samples.values()))
    return Trust(
        columns=tuple(WITNESSED[c] for c in columns),
        witnesses=tuple(_witnesses(run, executions, columns)),
        samples=tuple(_sample(e) for e in chosen[:MAX_SAMPLES]),
        more_samples=max(0, len(chosen) - MAX_SAMPLES),
        powers=_powers(run),
        hazards=tuple(shortened(h, 400) for h in hazards[:MAX_HAZARDS]),
        more_hazards=max(0, len(hazards) - MAX_HAZARDS),
        executions=len(executions),
        broken=sum(bool(e.error) for e in executions),
        processes=len({pid for e in executions for pid in _pids(e)}),
    )


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list | tuple) else []


def _derived(execution: ExecutionRecord) -> Mapping[str, Json]:
    """A system of another kind may witness nothing, or in a form of its own."""
    derived = execution.witness.get("derived")
    return derived if isinstance(derived, Mapping) else {}


def _pids(execution: ExecutionRecord) -> list[str]:
    return [plain(pid) for pid in _list(_derived(execution).get("pids"))]


def _witnesses(
    run: Run, executions: list[ExecutionRecord], columns: tuple[str, ...]
) -> Iterable[WitnessRow]:
    good = [e for e in executions if not e.error and _derived(e)]
    for axis in run.manifest.axes:
        for value in axis.values:
            own = [e for e in good if e.cell.get(axis.name, axis.baseline) == value]
            if own:
                yield WitnessRow(
                    axis=axis.name,
                    value=value,
                    baseline=value == axis.baseline,
                    runs=len(own),
                    ranges=tuple(_range(_derived(e).get(c) for e in own) for c in columns),
                    processes=len({pid for e in own for pid in _pids(e)}),
                )


def _range(values: Iterable[Json]) -> str:
    numbers = [v for v in values if isinstance(v, int | float)]
    if not numbers:
        return "not told"
    low, high = min(numbers), max(numbers)
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _sample(execution: ExecutionRecord) -> Sample:
    ranks = [r for r in _list(execution.witness.get("ranks")) if isinstance(r, Mapping)]
    threads = dict.fromkeys(plain(r["num_threads"]) for r in ranks if "num_threads" in r)
    return Sample(
        cell=f"{execution.checkpoint}: " + ", ".join(f"{k}={v}" for k, v in execution.cell.items()),
        executor=execution.settings.get("executor", "not told"),
        pids=tuple(_pids(execution)),
        threads=", ".join(threads) or "not told",
    )


def _times(multiple: float) -> str:
    return f"{number(multiple)} times"


def _powers(run: Run) -> tuple[PowerRow, ...]:
    rows = []
    for checkpoint in dict.fromkeys(p.checkpoint for p in run.powers):
        own = [p for p in run.powers if p.checkpoint == checkpoint]
        multiples = sorted(
            severity(m.value, m.bound) for p in own for m in p.movements if m.bound is not None
        )
        rows.append(
            PowerRow(
                checkpoint=checkpoint,
                cases=len(own),
                blind=sum(p.blind for p in own),
                least=_times(multiples[0]) if multiples else "not told",
                median=_times(multiples[len(multiples) // 2]) if multiples else "not told",
            )
        )
    return tuple(rows)
