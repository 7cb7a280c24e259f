"""Annotations of a GitHub job: `::error` lines that its log turns into marks on the page."""

from __future__ import annotations

from reports.load import Run
from reports.view.page import build_page
from reports.view.text import plural, shortened, visible
from reports.view.verdict import Safety

MAX_LINES = 10
"""GitHub shows ten annotations of a type per step and drops the rest without a word."""
MAX_CHARACTERS = 1_000


def annotation_lines(run: Run) -> list[str]:
    """At most MAX_LINES lines: one a finding, worst first; the last counts those left out."""
    page = build_page(run)
    verdict = page.verdict
    if verdict.safety is Safety.SAFE:
        return []
    lines = [
        _line("error", f.title, f"{f.fails_when} {f.divergence} {f.reproduce}")
        for f in page.findings
    ]
    for reasons, title in (
        (page.unexplained, "Failure without a finding"),
        (page.errors, "Error"),
        (page.vacuous, "Vacuous"),
    ):
        lines += [
            _line("error", title, f"{plural(g.pairs, 'comparison')}: {g.text}")
            for g in reasons.groups
        ]
    if not lines:
        lines = [_line("error", verdict.headline, verdict.sentence)]
    left = len(lines) + page.more_findings - MAX_LINES
    if left <= 0:
        return lines
    kept = lines[: MAX_LINES - 1]
    more = len(lines) + page.more_findings - len(kept)
    return [*kept, _line("error", verdict.headline, f"{more:,} more in the report")]


def _line(command: str, title: str, message: str) -> str:
    return f"::{command} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """A line break or a percent sign would end the line or begin an escape."""
    shown = shortened(visible(text).strip(), MAX_CHARACTERS)
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(shortened(text, 200)).replace(":", "%3A").replace(",", "%2C")
