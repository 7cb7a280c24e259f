"""What `parity trial conditions` found, in the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

    from harness.trials.conditions import Unanswered


def told(row: Mapping[str, Any] | Unanswered) -> str:
    """One line for a result, as it comes."""
    if not isinstance(row, Mapping):
        return f"{row.fault} seed {row.seed}: NOT ANSWERED: {row.why}"
    where = " | ".join(row["said"]) or "nothing"
    verdict = "as recorded" if row["agrees"] else f"RECORDED {' | '.join(row['recorded'])}"
    shown = f"; NOT HIDDEN by {', '.join(row['not_hidden'])}" if row["not_hidden"] else ""
    return f"{row['fault']} seed {row['seed']}: {where}: {verdict}{shown}"


def print_conditions(console: Console, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Every fault over its seeds, and what it comes to. Whether all is as recorded."""
    table = Table(title="attribution, masks and first detection, by ordinary cases on warm engines")
    table.add_column("fault", no_wrap=True)  # whole, to be copied
    columns = ("as recorded", "hidden", "found", "cases: median", "most")
    for column in (*columns, "seconds: median", "most"):
        table.add_column(column)
    by_fault: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_fault[row["fault"]].append(row)
    for name, group in by_fault.items():
        # Results of before first detection was measured do not say.
        seen = [row for row in group if row.get("found")]
        cases, seconds = ([r[k] for r in seen] for k in ("found_cases", "found_seconds"))
        table.add_row(
            name,
            f"{sum(r['agrees'] for r in group)} of {len(group)}",
            f"{sum(not r['not_hidden'] for r in group)} of {len(group)}",
            f"{len(seen)} of {len(group)}",
            *(f"{f(cases):g}" if cases else "-" for f in (median, max)),
            *(f"{f(seconds):.1f}" if seconds else "-" for f in (median, max)),
        )
    console.print(table)
    agree = sum(row["agrees"] for row in rows)
    hidden = sum(not row["not_hidden"] for row in rows)
    console.print(
        f"{agree} of {len(rows)} attributions agree with the record, {hidden} of {len(rows)} hide "
        "where the record says",
        highlight=False,
    )
    return bool(rows) and agree == hidden == len(rows)
