"""Breaks of `suites/unit/cli`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _oldest(run_folder: Callable[..., Path]) -> Callable[..., Path]:
    """`run_folder`, which takes the oldest run where none is named."""
    there = run_folder.__globals__

    def function(name: str | None) -> Path:
        if name is not None:
            return run_folder(name)
        files = there["runs_root"]().glob("*/run.json")
        return min(files, key=lambda file: file.stat().st_mtime).parent

    return function


def _believed(facts: Any) -> Any:
    """What is said of a compiler that was found and not tried."""
    return replace(facts, compiler_problem="" if facts.compiler else facts.compiler_problem)


BREAKS: Final = (
    Break(
        name="an-axis-is-not-listed",
        suite="suites/unit/cli/test_axes.py",
        red="test_a_program_reads_the_same",
        at="harness.cli.axes:_document",
        instead=instead.result(lambda told: {**told, "axes": told["axes"][:-1]}),
    ),
    Break(
        name="a-compiler-is-found-and-not-tried",
        suite="suites/unit/cli/test_doctor.py",
        red="test_a_compiler_that_cannot_compile_is_unfit",
        at="harness.systems.engine_facts:engine_facts",
        instead=instead.result(_believed),
    ),
    Break(
        name="a-folder-counts-as-a-checkpoint",
        suite="suites/unit/cli/test_models.py",
        red="test_a_damaged_checkpoint_is_not_here",
        at="harness.checkpoints.cache:CheckpointCache.holds",
        instead=instead.value(lambda cache, name, recipe: cache.path(name, recipe).exists()),
    ),
    Break(
        name="the-oldest-run-is-taken",
        suite="suites/unit/cli/test_report.py",
        red="test_the_newest_run_is_reported_and_its_verdict_is_no_exit_code",
        at="harness.cli.folders:run_folder",
        instead=_oldest,
    ),
)
