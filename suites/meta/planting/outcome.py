"""`Outcome`: what a suite file said with a break planted, and whether that is the right red."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from suites.meta.planting.defect import Break


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run.

    Attributes:
        exit: pytest's exit status; 1 is failed tests.
        failed: of every failed test, its id and the names of the exceptions it ended with.
        errors: what failed outside tests: collecting, setting up, tearing down.
        output: the end of what pytest printed.
        seconds: how long it took, the import of torch excluded.
    """

    exit: int
    failed: dict[str, list[str]]
    errors: list[str]
    output: str
    seconds: float

    def why_not_red(self, planted: Break) -> str | None:
        """None if the test that should notice did, and by saying so; otherwise what happened."""
        test = f"{planted.suite}::{planted.red}"
        mine = {name: by for name, by in self.failed.items() if name.partition("[")[0] == test}
        found = sorted({by for names in mine.values() for by in names})
        if self.errors:
            why = f"errors outside tests: {self.errors}"
        elif self.exit != pytest.ExitCode.TESTS_FAILED or not mine:
            why = f"exit status {self.exit}, failed {sorted(self.failed)}"
        elif not set(found) <= set(planted.by):
            why = f"failed by {found}, expected one of {list(planted.by)}: does the break fit?"
        else:
            return None
        return f"{planted.name}: expected {test} to fail, got {why}\n{self.output}"


class Recorder:
    """A pytest plug-in that writes down which tests failed, and by which exception."""

    def __init__(self) -> None:
        self.failed: dict[str, list[str]] = {}
        self.errors: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if report.failed and report.when == "call":
            found = [call.excinfo.value] if call.excinfo else []
            self.failed[report.nodeid] = _names(found) or ["XPASS"]
        elif report.failed:
            self.errors.append(f"{report.when} of {report.nodeid}")
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(f"collection of {report.nodeid}")


def _names(errors: Any) -> list[str]:
    """Class names of exceptions, those of a group's members instead of its own."""
    names = []
    for error in errors:
        inside = getattr(error, "exceptions", None)
        names += _names(inside) if inside else [type(error).__name__]
    return names
