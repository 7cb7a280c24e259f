"""The end of a run on a terminal: verdict, counts, maps, findings and how to see each again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.fates import Fate
from reports.load import Run
from reports.terminal_story import print_story
from reports.view.changes import Change, ChangedFinding, Changes
from reports.view.findings import FindingView
from reports.view.known import Known, place, remedy
from reports.view.lattice import Lattice
from reports.view.page import Page, build_page
from reports.view.reasons import Reasons
from reports.view.standing import STANDINGS
from reports.view.text import plural, shortened, visible
from reports.view.verdict import Safety

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

MAX_FINDINGS = 5
MAX_REASONS = 3
MAX_KNOWN = 10
STYLES = {
    "fail": "bold red",
    "error": "bold magenta",
    "vacuous": "bold yellow",
    "pass": "green",
    "inapplicable": "dim",
    "refused": "dim",
    "absent": "dim",
}
SEALS = {Safety.SAFE: ("✓", "green"), Safety.UNSAFE: ("✕", "red"), Safety.UNPROVEN: ("!", "yellow")}


def _plain(text: str, style: str = "") -> Text:
    """Recorded text as rich shows it: no markup is read in it, no control character survives."""
    # rich costs a tenth of a second; a caller that prints nothing does not pay for it.
    from rich.text import Text  # noqa: PLC0415

    return Text(visible(text), style=style)


def print_summary(run: Run, console: Console) -> None:
    """Print what a person needs before opening the report; nothing is written elsewhere."""
    page = build_page(run)
    if page.story is not None:
        print_story(page.story, console, command=page.setup.command)
    _print_verdict(page, console)
    if page.known is not None:
        print_known(page.known, console)
    for lattice in page.lattices:
        console.print()
        _print_map(lattice, console)
    for group in page.groups[:MAX_FINDINGS]:
        console.print()
        _print_finding(group.lead, console)
        if group.variants:
            same = f"  The same switches and first difference: {shortened(group.names, 600)}"
            console.print(_plain(same))
    left = page.more_findings + sum(1 + len(g.variants) for g in page.groups[MAX_FINDINGS:])
    if left > 0:
        console.print(_plain(f"… and {plural(left, 'finding')} more in the report.", "dim"))
    for title, reasons in (
        ("Failures not yet attributed", page.unexplained),
        ("Errors", page.errors),
        ("Vacuous", page.vacuous),
        ("Cannot act (not counted)", page.inapplicable),
    ):
        _print_reasons(title, reasons, console)
    for reached in page.reached:
        console.print()
        console.print(_plain(reached.sentence))
        for missing in reached.missing:
            console.print(_plain(f"  not judged: {missing}", "yellow"))
        if reached.more_missing:
            console.print(_plain(f"  … and {reached.more_missing:,} more", "dim"))
    console.print()
    console.print(_plain(page.verdict.statistics))
    again = f"seed {page.setup.seed}; again: {page.setup.command}"
    console.print(_plain(again, "dim"), soft_wrap=True)


MAX_DIFFERENCES = 20


def print_changes(found: Changes, console: Console) -> None:
    """Print what changed between two runs, worst first."""
    console.print(_plain(f"{found.run} against {found.baseline}", "bold"))
    counts = [f"{found.count(c)} {c}" for c in Change if found.count(c)]
    console.print(_plain(", ".join(counts) or "no finding in either run"))
    if found.caution:
        console.print(_plain(f"! {found.caution}", "yellow"))
    for finding in found.findings:
        _print_change(finding, console)
    grown = [d for d in found.drift if d.grown]
    for row in grown:
        text = f"drift: {row.checkpoint}, {row.tier}, {row.metric}: {row.growth}, now {row.now}"
        console.print(_plain(text, "yellow"))
    if found.differences:
        console.print(_plain("The runs differ in:", "bold"))
    for difference in found.differences[:MAX_DIFFERENCES]:
        was, now = difference.before or "nothing", difference.now or "nothing"
        text = f"  {difference.kind}: {difference.name}: {was} -> {now}"
        console.print(_plain(text), soft_wrap=True)
    left = len(found.differences) - MAX_DIFFERENCES
    if left > 0:
        console.print(_plain(f"  … and {plural(left, 'more difference')}", "dim"))


def print_known(known: Known, console: Console) -> None:
    """What became of everything known, worst first; hard cases that pass are only counted."""
    console.print(_plain(f"Known before, replayed first: {known.summary}", "bold"))
    told = [row for row in known.rows if row.fate is not Fate.PASSES]
    for row in told[:MAX_KNOWN]:
        look = STANDINGS[row.fate]
        head = _plain(f"  {look.glyph} {row.fate} ", look.style)
        console.print(head.append_text(_plain(f"{row.name}: {shortened(row.title, 200)}")))
        console.print(_plain(f"    {row.checkpoint}; {place(row)}", "dim"), soft_wrap=True)
        if row.note:
            console.print(_plain(f"    {shortened(row.note, 300)}"))
        todo = remedy(row) or row.reproduce
        if todo:
            console.print(_plain(f"    {todo}"), soft_wrap=True)
    left = len(told) - MAX_KNOWN + known.more
    if left > 0:
        console.print(_plain(f"  … and {left} more in the report.", "dim"))


def _print_change(finding: ChangedFinding, console: Console) -> None:
    look = STANDINGS[finding.change]
    head = _plain(f"{look.glyph} {finding.change} ", look.style)
    console.print(head.append_text(_plain(shortened(finding.title, 200))))
    values = " -> ".join(filter(None, (finding.before, finding.now)))
    console.print(_plain(f"    {finding.checkpoint}; {values}; {', '.join(finding.ids)}", "dim"))
    if finding.note:
        console.print(_plain(f"    {finding.note}"))


def _print_verdict(page: Page, console: Console) -> None:
    from rich.panel import Panel  # noqa: PLC0415

    verdict = page.verdict
    glyph, colour = SEALS[verdict.safety]
    body = _plain(f"{glyph} {verdict.headline}\n", f"bold {colour}")
    body.append_text(_plain(verdict.sentence))
    for count in verdict.counts:
        look = count.look
        style = STYLES[look.css] if count.pairs else "dim"
        separator = "\n" if count is verdict.counts[0] else "   "
        body.append_text(_plain(f"{separator}{look.glyph} {look.word} {count.pairs:,}", style))
    console.print(Panel(body, border_style=colour, expand=False))
    for problem in verdict.problems:
        console.print(_plain(f"! {problem}", "yellow"))
    if page.setup.plants:
        planted = ", ".join(page.setup.plants)
        console.print(_plain(f"! planted on purpose: {planted}", "yellow"))
    for notice in page.setup.notices:
        console.print(_plain(f"! {notice}", "yellow"))


def _print_map(lattice: Lattice, console: Console) -> None:
    console.print(
        _plain(
            f"{lattice.checkpoint}: {lattice.judged_cells} of {lattice.possible_cells} cells, "
            f"{lattice.judged_edges} of {lattice.possible_edges} edges judged",
            "bold",
        )
    )
    console.print(_map_table(lattice))
    bad = [e for e in lattice.edges if e.look.css in ("fail", "error", "vacuous")]
    for edge in bad[:MAX_REASONS]:
        console.print(_plain(f"  {edge.look.glyph} edge {edge.summary}", STYLES[edge.look.css]))
    if len(bad) > MAX_REASONS:
        console.print(_plain(f"  … and {plural(len(bad) - MAX_REASONS, 'edge')} more", "dim"))
    for reason, cells in lattice.refusals:
        text = f"  ⊘ {plural(cells, 'cell')} refused: {shortened(reason, 300)}"
        console.print(_plain(text, "dim"))


def _map_table(lattice: Lattice) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(_plain(" / ".join(lattice.row_axes)))
    for values in lattice.column_labels:
        named = zip(lattice.column_axes, values, strict=True)
        table.add_column(_plain(", ".join(f"{a}={v}" if v.isdigit() else v for a, v in named)))
    places = {(c.row, c.column): c for c in lattice.cells}
    for row, values in enumerate(lattice.row_labels):
        marks = []
        for column in range(len(lattice.column_labels)):
            cell = places[row, column]
            word = "baseline" if cell.baseline else cell.look.short
            marks.append(_plain(f"{cell.look.glyph} {word}", STYLES[cell.look.css]))
        table.add_row(_plain(", ".join(values)), *marks)
    return table


def _print_finding(finding: FindingView, console: Console) -> None:
    look = finding.look
    console.print(
        _plain(f"{look.glyph} {look.word} ", STYLES[look.css]).append_text(
            _plain(shortened(finding.title, 200), "bold")
        )
    )
    share = f" ({finding.share})" if finding.share else ""
    lines = [
        f"{finding.checkpoint}, task {finding.tasks}; worst {finding.worst}{share} "
        f"{finding.worst_where}".rstrip(),
        *(f"Also: {also}" for also in finding.also),
        finding.fails_when,
        f"Hidden by: {', '.join(map(str, finding.hidden.by))}" if finding.hidden.by else "",
        f"Could not act on this case: {', '.join(finding.hidden.idle)}"
        if finding.hidden.idle
        else "",
        *(f"{name}: {'; '.join(values)}" for name, _, values in finding.conditions.named),
        finding.divergence,
    ]
    for line in filter(None, lines):
        console.print(_plain(f"  {line}"))
    if finding.reproduce:
        # Not wrapped, so that it can be copied in one piece.
        console.print(_plain(f"  See it again: {finding.reproduce}"), soft_wrap=True)


def _print_reasons(title: str, reasons: Reasons, console: Console) -> None:
    if not reasons.pairs:
        return
    console.print()
    console.print(_plain(f"{title}: {plural(reasons.pairs, 'comparison')}", "bold"))
    for group in reasons.groups[:MAX_REASONS]:
        console.print(_plain(f"  {group.pairs:,} x {shortened(group.text, 300)}"))
    left = len(reasons.groups) + reasons.more - MAX_REASONS
    if left > 0:
        console.print(_plain(f"  … and {plural(left, 'kind')} more in the report", "dim"))
