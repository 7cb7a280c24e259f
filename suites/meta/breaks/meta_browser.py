"""Breaks of `suites/meta/browser`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _fetching(page: str) -> str:
    """A page that wants a picture from elsewhere."""
    return page.replace("</main>", '<img alt="" src="http://127.0.0.1:9/x.png"></main>')


def _one_lost(index: Any) -> Any:
    """An index without its last case."""
    return replace(index, lines=index.lines[:-1])


BREAKS: Final = (
    Break(
        name="the-page-fetches-a-picture",
        suite="suites/meta/browser/test_page.py",
        red="test_it_opens_alone_without_a_complaint_and_fits",
        at="reports.html.render:render_text",
        instead=instead.result(_fetching),
    ),
    Break(
        name="a-case-is-not-indexed",
        suite="suites/meta/browser/test_search.py",
        red="test_ten_thousand_cases_are_searched_and_filtered",
        at="reports.view.case_index:case_index",
        instead=instead.result(_one_lost),
    ),
)
