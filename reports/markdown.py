"""A job's summary in Markdown, as GitHub and GitLab show it, within their limits.

Everything recorded stands in code spans and code blocks: there no tag, link, mention or picture is
read, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reports.load import Run
from reports.view.changes import Change, Changes
from reports.view.findings import FindingView
from reports.view.grouping import FindingGroup
from reports.view.known import Known, place, remedy
from reports.view.page import Page, build_page
from reports.view.reasons import Reasons
from reports.view.text import plural, shortened, visible

MAX_FINDINGS = 20
MAX_REASONS = 5
MAX_BYTES = 1_000_000
"""GitHub drops a step's summary over 1 MiB (1,048,576 bytes) as a whole."""
MARKS = {"safe": "✅", "unsafe": "❌", "unproven": "⚠️"}


def markdown(run: Run, changes: Changes | None = None) -> str:
    """The whole summary; what does not fit is counted, and stands in the HTML report."""
    page = build_page(run, changes)
    head = "\n\n".join(_head(page))
    parts = [
        *_known(page.known),
        *_changes(changes),
        *(_group(g) for g in page.groups[:MAX_FINDINGS]),
    ]
    left = page.more_findings + sum(1 + len(g.variants) for g in page.groups[MAX_FINDINGS:])
    tail = [f"… and {plural(left, 'finding')} more in the report."] if left > 0 else []
    for title, reasons in (
        ("Failures not yet attributed", page.unexplained),
        ("Errors", page.errors),
        ("Vacuous: these prove nothing", page.vacuous),
    ):
        tail += _reasons(title, reasons)
    tail.append(f"See it again: {span(page.setup.command)}")
    return _fitting(head, parts, "\n\n".join(tail))


def span(text: str) -> str:
    """`text` as one code span that nothing in it can leave; fit for a table."""
    flat = re.sub(r"\s+", " ", visible(text)).strip() or " "
    runs = [len(run) for run in re.findall(r"`+", flat)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    # In a table a bar ends the cell, in code too, unless a backslash stands before it.
    return f"{fence}{pad}{flat}{pad}{fence}".replace("|", "\\|")


def block(text: str, language: str = "") -> str:
    """`text` as a code block that nothing in it can close."""
    shown = visible(text).rstrip("\n")
    runs = [len(run) for run in re.findall(r"`+", shown)]
    fence = "`" * max(3, max(runs, default=0) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _head(page: Page) -> Iterable[str]:
    verdict, setup = page.verdict, page.setup
    yield f"## {MARKS[verdict.safety]} {verdict.headline}"
    yield f"{verdict.sentence} {verdict.statistics}"
    for problem in verdict.problems:
        yield f"> {span(problem)}"
    if setup.plants:
        planted = ", ".join(span(plant) for plant in setup.plants)
        yield f"> Planted on purpose: {planted}. A failure here shows that the tool sees it."
    for notice in setup.notices[:MAX_REASONS]:
        yield f"> Notice: {span(shortened(notice, 500))}"
    yield table([c.look.word for c in verdict.counts], [[f"{c.pairs:,}" for c in verdict.counts]])
    maps = {lattice.checkpoint: lattice for lattice in page.lattices}
    rows = []
    for c in page.coverage.checkpoints:
        lattice = maps.get(c.name)
        judged = (
            ["none", "none"]
            if lattice is None
            else [
                f"{lattice.judged_cells} of {lattice.possible_cells}",
                f"{lattice.judged_edges} of {lattice.possible_edges}",
            ]
        )
        rows.append([span(c.name), f"{c.cases:,}", *judged])
    if rows:
        yield table(["checkpoint", "cases", "cells judged", "edges judged"], rows)
    for reached in page.reached:
        left = [*map(span, reached.missing), *(["more"] if reached.more_missing else [])]
        yield reached.sentence + (f" Not judged: {'; '.join(left)}." if left else "")
    yield f"Run {span(setup.run_id)}, profile {span(setup.profile)}, seed {setup.seed}."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are already guarded."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def _known(known: Known | None) -> list[str]:
    if known is None:
        return []
    lines = [f"### Known before, replayed first: {known.summary}"]
    rows = [
        [
            str(row.fate),
            span(shortened(row.title, 200)),
            span(row.name),
            span(place(row)),
            span(remedy(row) or row.reproduce or "-"),
        ]
        for row in known.rows[:MAX_FINDINGS]
    ]
    lines.append(table(["now", "finding or case", "id", "from", "again, or what to do"], rows))
    left = len(known.rows) - MAX_FINDINGS + known.more
    if left > 0:
        lines.append(f"… and {left} more in the report.")
    return ["\n\n".join(lines)]


def _changes(changes: Changes | None) -> list[str]:
    if changes is None:
        return []
    counted = [f"{changes.count(c)} {c}" for c in Change if changes.count(c)]
    lines = [f"### Against {span(changes.baseline)}: {', '.join(counted) or 'no finding'}"]
    if changes.caution:
        lines.append(f"> {changes.caution}")
    shown = changes.findings[:MAX_FINDINGS]
    if shown:
        rows = [[str(f.change), span(shortened(f.title, 200)), span(f.ids[0])] for f in shown]
        lines.append(table(["change", "finding", "id"], rows))
    grown = [d for d in changes.drift if d.grown]
    if grown:
        rows = [[span(d.checkpoint), span(d.metric), d.growth, d.now] for d in grown]
        lines.append(table(["drift", "metric", "against the baseline run", "now"], rows))
    return ["\n\n".join(lines)]


def _group(group: FindingGroup) -> str:
    told = _finding(group.lead)
    if not group.variants:
        return told
    same = span(shortened(group.names, 1_000))
    return f"{told}\n\nThe same switches and first difference: {same}."


def _finding(finding: FindingView) -> str:
    lines = [
        f"### {finding.look.glyph} {finding.look.word} {span(shortened(finding.title, 300))}",
        f"{span(finding.checkpoint)}, task {span(finding.tasks)}. Worst"
        + (f" {finding.worst_where}" if finding.worst_where else "")
        + f": {span(finding.worst)}"
        + (f" ({finding.share})." if finding.share else "."),
        span(finding.fails_when),
    ]
    if finding.also:
        lines.append(f"Also: {', '.join(finding.also)}.")
    if finding.hidden.by:
        lines.append(f"Hidden by {', '.join(span(str(m)) for m in finding.hidden.by)}.")
    if finding.divergence:
        lines.append(finding.divergence)
    if finding.reproduce:
        lines.append(block(finding.reproduce, "sh"))
    return "\n\n".join(lines)


def _reasons(title: str, reasons: Reasons) -> list[str]:
    if not reasons.pairs:
        return []
    lines = [f"### {title}: {plural(reasons.pairs, 'comparison')}"]
    for group in reasons.groups[:MAX_REASONS]:
        lines.append(f"- {group.pairs:,} × {span(shortened(group.text, 400))}")
    left = len(reasons.groups) + reasons.more - MAX_REASONS
    if left > 0:
        lines.append(f"- … and {plural(left, 'kind')} more in the report")
    return ["\n".join((lines[0], "", *lines[1:]))]


def _fitting(head: str, parts: Sequence[str], tail: str) -> str:
    size = len(head.encode()) + len(tail.encode())
    kept: list[str] = []
    for part in parts:
        size += len(part.encode()) + 2
        if size > MAX_BYTES - 200:
            kept.append(f"… and {plural(len(parts) - len(kept), 'part')} that do not fit here.")
            break
        kept.append(part)
    return "\n\n".join((head, *kept, tail)) + "\n"
