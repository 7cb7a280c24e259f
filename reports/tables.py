"""The records as flat tables, for a notebook or a data base: CSV and Parquet through pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.record import Json
from reports.load import Run
from reports.view.text import plain, visible

if TYPE_CHECKING:
    from pandas import DataFrame

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""

Row = dict[str, Json]


def write_csv(run: Run, folder: Path) -> list[Path]:
    """One file a table. Text that a spreadsheet would run begins with an apostrophe."""
    return _write(run, folder, "csv", _write_csv)


def write_parquet(run: Run, folder: Path) -> list[Path]:
    """One file a table, with the types of the columns."""
    return _write(run, folder, "parquet", lambda frame, path: frame.to_parquet(path, index=False))


def rows(run: Run) -> Mapping[str, list[Row]]:
    """Table -> its rows; ids join them."""
    return {
        "cases": list(_cases(run)),
        "executions": list(_executions(run)),
        "pairs": list(_pairs(run)),
        "measurements": list(_measurements(run)),
        "findings": list(_findings(run)),
    }


def _write(
    run: Run, folder: Path, suffix: str, write: Callable[[DataFrame, Path], None]
) -> list[Path]:
    # pandas costs half a second; a caller that wants no table does not pay for it.
    from pandas import DataFrame  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, found in rows(run).items():
        path = folder / f"{name}.{suffix}"
        part = path.with_name(f".{path.name}.part")
        write(DataFrame([{k: _plain(v) for k, v in row.items()} for row in found]), part)
        part.replace(path)
        paths.append(path)
    return paths


def _write_csv(frame: DataFrame, path: Path) -> None:
    frame = frame.rename(columns=_inert)
    for column in frame.columns:
        frame[column] = [_inert(v) if isinstance(v, str) else v for v in frame[column]]
    frame.to_csv(path, index=False)


def _plain(value: Json) -> Json:
    return visible(value) if isinstance(value, str) else value


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def _flat(prefix: str, values: Mapping[str, str]) -> Row:
    return {f"{prefix}{visible(k)}": v for k, v in values.items()}


def _cases(run: Run) -> Iterable[Row]:
    for case in run.cases.values():
        yield {
            "case_id": case.case_id,
            "checkpoint": case.checkpoint,
            "task": case.task,
            "prompts": len(case.lengths),
            "tokens": sum(case.lengths),
            "longest": max(case.lengths, default=0),
            "boundaries": "; ".join(case.boundaries),
        }


def _executions(run: Run) -> Iterable[Row]:
    for e in run.executions.values():
        yield {
            "execution_id": e.execution_id,
            "case_id": e.case_id,
            "checkpoint": e.checkpoint,
            **_flat("cell.", e.cell),
            **_flat("setting.", e.settings),
            "plan_digest": e.plan_digest,
            "output_digest": e.output_digest,
            "seconds": float(e.seconds),
            "attempt": e.attempt,
            "error": e.error,
        }


def _pairs(run: Run) -> Iterable[Row]:
    finding_of = {p: f.finding_id for f in run.findings for p in f.pairs}
    for p in run.pairs:
        yield {
            "pair_id": p.pair_id,
            "case_id": p.case_id,
            "checkpoint": p.checkpoint,
            "task": p.task,
            "comparison": str(p.comparison),
            "axes": ", ".join(p.axes),
            "tier": str(p.tier),
            "outcome": str(p.outcome),
            **_flat("a.", p.cell_a),
            **_flat("b.", p.cell_b),
            **_flat("setting.", p.settings),
            "compared": p.num_compared,
            "finding_id": finding_of.get(p.pair_id, ""),
            "warnings": "; ".join(p.warnings),
            "reason": p.reason,
        }


def _measurements(run: Run) -> Iterable[Row]:
    for p in run.pairs:
        for m in p.measurements:
            yield {
                "pair_id": p.pair_id,
                "metric": m.metric,
                "value": float(m.value),
                "bound": None if m.bound is None else float(m.bound),
                "unit": m.unit,
                "exceeded": m.exceeded,
            }


def _findings(run: Run) -> Iterable[Row]:
    for f in run.findings:
        yield {
            "finding_id": f.finding_id,
            "signature": f.signature,
            "title": f.title,
            "checkpoint": f.checkpoint,
            "task": f.task,
            "pairs": len(f.pairs),
            "minimal_sets": " | ".join(" & ".join(s) for s in f.minimal_sets),
            "masked_by": "; ".join(f.masked_by),
            "conditions": "; ".join(f.conditions),
            "metric": f.metric,
            "worst": float(f.worst),
            "bound": None if f.bound is None else float(f.bound),
            "divergence": "" if f.first_divergence is None else plain(_place(f)),
            "reproduce": f.reproduce,
        }


def _place(finding: Json) -> Json:
    where = finding.first_divergence
    return {n: getattr(where, n) for n in ("prompt", "step", "chunk", "layer", "token")}
