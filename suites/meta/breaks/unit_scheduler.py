"""Breaks of `suites/unit/scheduler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _last_first(add: Callable[..., Any]) -> Callable[..., Any]:
    """`FcfsScheduler.add`, after which the newest of the least urgent heads the line."""

    def function(scheduler: Any, *args: Any, **kwargs: Any) -> None:
        add(scheduler, *args, **kwargs)
        scheduler._line.reverse()

    return function


BREAKS: Final = (
    Break(
        name="steps-in-flight-are-not-waited-for",
        suite="suites/unit/scheduler/test_memory.py",
        red="test_memory_is_taken_only_when_no_step_in_flight_reads_it",
        at="engine.kv.blocks:BlockPool.is_pinned",
        instead=instead.returns(False),  # noqa: FBT003
    ),
    Break(
        name="slots-never-complain",
        suite="suites/unit/scheduler/test_slots.py",
        red="test_integrity_prints_both_sides",
        at="engine.scheduler.slots:SlotPool.check_integrity",
        instead=instead.returns(None),
    ),
    Break(
        name="plans-are-not-read-before-replay",
        suite="suites/unit/scheduler/test_replay.py",
        red="test_a_plan_that_contradicts_itself_is_refused",
        at="engine.scheduler.replay:_check_consistent",
        instead=instead.returns(None),
    ),
    Break(
        name="the-last-in-line-goes-first",
        suite="suites/unit/scheduler/test_properties.py",
        red="test_nothing_starves",
        at="engine.scheduler.fcfs:FcfsScheduler.add",
        instead=_last_first,
    ),
    Break(
        name="preemptions-are-not-replayed",
        suite="suites/unit/scheduler/test_properties.py",
        red="test_replaying_a_free_plan_gives_the_plan",
        at="engine.scheduler.draft:Draft.preempt",
        instead=instead.returns(None),
        by=("PlanError", "LedgerError"),  # the replay's own: its plan has no room left
    ),
    Break(
        name="the-budget-is-not-kept",
        suite="suites/unit/scheduler/test_fcfs.py",
        red="test_a_prompt_is_split_to_what_is_left_of_the_budget",
        at="engine.scheduler.fcfs:FcfsScheduler._take",
        instead=instead.value(lambda scheduler, remaining, budget: remaining),
    ),
)
