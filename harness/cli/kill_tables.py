"""The kill matrix in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from harness.campaign.rivalry import Rivalry
from harness.trials.matrix import CHECKS, CLEAN, Kill, KillMatrix


def told(kill: Kill, *, is_control: bool) -> str:
    """One line for a result, as it comes."""
    if kill.name == CLEAN or is_control:
        what = "control " * is_control + kill.name
        where = f"{kill.checkpoint} in {kill.dtype}"
        return f"{what}, {where}: {kill.pairs} comparisons, {_alarms(kill)}"
    if kill.lost:
        return f"{kill.name}: NOT RUN: {kill.lost}"
    how = f"killed by case {kill.cases}" if kill.killed else f"ALIVE after {kill.cases} cases"
    return f"{kill.name}: {how} ({', '.join(f'{c} {n}' for c, n in kill.by.items()) or 'nothing'})"


def print_matrix(console: Console, matrix: KillMatrix) -> None:
    """Every fault by check, the controls, and what it comes to."""
    if matrix.kills:
        console.print(_table("kill matrix: comparisons that failed, by check", matrix.kills))
    for kill in matrix.controls:
        mark = "✕" if kill.alarms or kill in matrix.unjudged else "✓"
        console.print(f"{mark} {told(kill, is_control=True)}", highlight=False)
    for equivalent in matrix.equivalents:
        kill = equivalent.kill
        mark = f"✕ REFUTED ({told(kill, is_control=False)})" if equivalent.refuted else "="
        console.print(
            f"{mark} {kill.name} is no defect in {kill.dtype}: {equivalent.reason} "
            f"({kill.compared} comparisons with one side changed)",
            highlight=False,
        )
    for found in matrix.rivalry():
        console.print(_rules(found))
    killed = sum(kill.killed for kill in matrix.kills)
    clean = sum(kill.pairs for kill in matrix.clean)
    console.print(
        f"{killed} of {len(matrix.kills)} killed{_equivalent(matrix)}; "
        f"{matrix.false_alarms} false alarms in {clean} "
        f"comparisons on the clean engine and {sum(k.pairs for k in matrix.controls)} with "
        f"{len(matrix.controls)} controls",
        highlight=False,
    )


def _equivalent(matrix: KillMatrix) -> str:
    number = len(matrix.equivalents)
    return f", {number} more are no defects in their dtype" if number else ""


def _rules(found: Rivalry) -> Table:
    title = f"rules of other projects on the same outputs, {found.dtype}"
    table = Table(title=title)
    for column in ("rule", "false alarms", "of pairs", "faults found", "of those that changed one"):
        table.add_column(column)
    for name, tally in found.rules.items():
        table.add_row(
            name,
            str(tally.false_alarms),
            str(found.legitimate),
            str(len(tally.faults)),
            str(len(found.faults)),
        )
    return table


def _alarms(kill: Kill) -> str:
    errors = kill.by.get("error", 0)
    return f"{kill.alarms} false alarms" + (f", {errors} ERRORS: it shows nothing" * bool(errors))


def _table(title: str, kills: tuple[Kill, ...]) -> Table:
    table = Table(title=title)
    for column in ("fault", "killed", "by case", *CHECKS):
        table.add_column(column)
    for kill in kills:
        table.add_row(
            kill.name,
            "yes" if kill.killed else "NO",
            str(kill.cases),
            *(str(kill.by.get(check, "")) for check in CHECKS),
        )
    return table
