"""An engine judged from a test of its owner: a run like any other, told as one test's failure."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.systems.base import System
    from reports.load import Run
    from reports.view.findings import FindingView
    from reports.view.page import Page

MAX_FINDINGS = 3
MAX_REASONS = 3


class ParityCheck:
    """What the `parity` fixture is. Owns nothing: every check is a recorded run of its own."""

    def check(
        self,
        system: str | Callable[[Any], System],
        *,
        cases: int | str | Path = 20,
        model: str = "tiny-qwen3",
        only: Sequence[str] | None = None,
        seed: int = 0,
        dtype: str = "float32",
        options: Mapping[str, Any] | None = None,
    ) -> Path:
        """Judge `system` and fail the test where its answers depend on how it is run.

        system: a name that `parity systems` lists, `FILE.py:FACTORY`, or the factory itself, which
            is defined at the top level of a module: a worker process imports it.
        cases: how many are drawn, or a file of them (JSON lines).
        model: a checkpoint that `parity models` lists, or a model folder.
        only: axes to vary; default: the four primary ones. What the system refuses is left out.
        seed: everything drawn follows from it.
        options: the system's own, as `parity run --set` takes them.

        Returns the HTML report. The test also fails where nothing was proved: an error, a switch
        that did not act, no comparison at all.
        """
        __tracebackhide__ = True
        from harness.cli.app import REFUSALS  # noqa: PLC0415 - loads every command

        # As `parity` itself does: before a worker that computes is started.
        os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
        name = system if isinstance(system, str) else place_of(system)
        try:
            folder, code = _run(
                name,
                cases=cases,
                model=model,
                only=only,
                seed=seed,
                dtype=dtype,
                options=options or {},
            )
        except REFUSALS as error:
            pytest.fail(f"parity.check({name!r}): {error}", pytrace=False)
        report = folder / "report.html"
        if code:
            pytest.fail(told(folder, name), pytrace=False)
        sys.stdout.write(f"parity: {name}, {model} agrees; report: {report}\n")
        return report


def place_of(factory: Callable[[Any], System]) -> str:
    """`FILE.py:FACTORY` or `MODULE:FACTORY`, as a worker process finds it.

    Fails the test where it cannot be found: a lambda, or a function within a function.
    """
    __tracebackhide__ = True
    name = getattr(factory, "__qualname__", "")
    module = sys.modules.get(getattr(factory, "__module__", ""))
    file = getattr(module, "__file__", None)
    if module is None or file is None or getattr(module, name, None) is not factory:
        pytest.fail(
            f"parity.check expects a factory that a worker process can import, got {factory!r}. "
            "Define it at the top level of a module (def make(assignment): ...), or name it: "
            '"my_engine.py:make"',
            pytrace=False,
        )
    # A module of a package may import its neighbours by dots, which needs its whole name.
    return f"{module.__name__ if module.__package__ else Path(file).resolve()}:{name}"


def _run(
    system: str,
    *,
    cases: int | str | Path,
    model: str,
    only: Sequence[str] | None,
    seed: int,
    dtype: str,
    options: Mapping[str, Any],
) -> tuple[Path, int]:
    """The recorded run and its exit code."""
    from rich.console import Console  # noqa: PLC0415 - only who asks for it pays

    from harness.cli.folders import new_run_id, runs_root  # noqa: PLC0415
    from harness.cli.request import build_spec, manifest_of  # noqa: PLC0415
    from harness.cli.run import campaign  # noqa: PLC0415
    from harness.record import NoticeRecord, RunWriter  # noqa: PLC0415

    spec, notices = build_spec(
        profile="smoke",
        only=None if only is None else ",".join(only),
        models=[model],
        cases=None if isinstance(cases, int) else Path(cases),
        plants=[],
        seed=seed,
        batch_invariant=False,
        system=system,
        options=options,
        dtype=dtype,
        sizes={"cases": cases} if isinstance(cases, int) else {},
    )
    folder = runs_root().resolve() / new_run_id()
    writer = RunWriter(folder, manifest_of(spec, folder.name, notices, ()))
    for notice in notices:
        writer.append(NoticeRecord(text=notice))
    quiet = Console(file=io.StringIO())
    return folder, campaign(spec, writer, quiet, workers=1, minutes=None)


def told(folder: Path, system: str) -> str:
    """What a developer needs of a run that was not green, worst first."""
    from reports.load import load_run  # noqa: PLC0415 - only a failure pays
    from reports.view.page import build_page  # noqa: PLC0415

    run = load_run(folder)
    page = build_page(run)
    models = ", ".join(c.name for c in run.manifest.checkpoints)
    lines = [
        f"{system}, {models}: {page.verdict.headline}",
        page.verdict.sentence,
        *_findings(page),
        *_reasons(page),
        *_notices(run),
        "",
        f"report: {folder / 'report.html'}",
        f"again:  {page.setup.command}",
    ]
    return "\n".join(lines)


def _findings(page: Page) -> list[str]:
    leads = [group.lead for group in page.groups]
    lines = [line for finding in leads[:MAX_FINDINGS] for line in _finding(finding)]
    left = len(leads) - MAX_FINDINGS
    return [*lines, *([f"and {left} more in the report"] if left > 0 else [])]


def _finding(finding: FindingView) -> list[str]:
    share = f" ({finding.share})" if finding.share else ""
    lines = [
        f"  worst {finding.worst}{share} {finding.worst_where}".rstrip(),
        f"  {finding.fails_when}",
        *(f"  {name}: {'; '.join(values)}" for name, _, values in finding.conditions.named),
        f"  first difference: {finding.divergence}" if finding.divergence else "",
        f"  see it again: {finding.reproduce}" if finding.reproduce else "",
    ]
    return ["", f"{finding.look.glyph} {finding.title}", *filter(None, lines)]


def _reasons(page: Page) -> list[str]:
    lines = []
    for title, reasons in (
        ("failures not yet attributed", page.unexplained),
        ("errors", page.errors),
        ("vacuous: these prove nothing", page.vacuous),
    ):
        if reasons.pairs:
            lines += ["", f"{title}: {reasons.pairs} comparisons"]
            lines += [f"  {group.pairs} x {group.text}" for group in reasons.groups[:MAX_REASONS]]
    return lines


def _notices(run: Run) -> list[str]:
    return ["", *(f"notice: {text}" for text in run.notices)] if run.notices else []
