"""Breaks of `suites/unit/execution`, and of recordings on a GPU."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="every-step-gets-the-largest-bucket",
        suite="suites/unit/execution/test_buckets.py",
        red="test_a_step_gets_the_least_bucket_that_holds_it",
        at="engine.execution.buckets:bucket_of",
        instead=instead.value(lambda buckets, rows: buckets[-1]),
    ),
    Break(
        name="nothing-is-captured",
        suite="suites/gpu/test_graphs.py",
        red="test_recordings_are_replayed_in_every_step",
        at="engine.execution.recording:CudaRecorder.__call__",
        instead=instead.value(lambda recorder, work: work),
        needs="cuda",
    ),
    Break(
        name="ranks-are-not-counted-before-they-start",
        suite="suites/unit/execution/test_process_devices.py",
        red="test_more_ranks_than_devices_are_refused",
        at="engine.executor.processes:_require_devices",
        instead=instead.returns(None),
        by=("WorkerError",),  # of a rank that was started for nothing
    ),
)
