"""Leaves these tests out, and says so, where neither a GPU nor the interpreter can run them.

After a run it prints one table: how far each kernel was from its reference.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest

from suites.figures import show
from suites.kernels.errors import COLUMNS, Comparison, rows, take
from suites.kernels.where import DEVICE

collect_ignore_glob = [] if DEVICE else ["test_*.py"]
NOTES: Final = "errors of kernels"
"""The property of a test's report that holds its notes: a worker sends reports and nothing else."""


def pytest_report_collectionfinish() -> str:
    """Where the kernels run."""
    if not DEVICE:
        return "suites/kernels left out: no GPU, and TRITON_INTERPRET=1 is not set"
    return f"suites/kernels on {DEVICE}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Attach what the test noted to its report, whether it passes or fails."""
    take()
    try:
        return (yield)
    finally:
        item.user_properties.append((NOTES, take()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, of all workers' tests."""
    notes = [
        Comparison(**{**note, "shape": tuple(note["shape"])})
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        for name, told in getattr(report, "user_properties", ())
        if name == NOTES
        for note in told
    ]
    if notes:
        show(f"Errors of the kernels on {DEVICE}, each the largest found", COLUMNS, rows(notes))
