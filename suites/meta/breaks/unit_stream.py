"""Breaks of `suites/unit/stream`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="an-event-orders-nothing",
        suite="suites/unit/stream/test_hazards.py",
        red="test_a_waiting_stream_or_host_comes_after_the_event_and_no_later",
        at="engine.stream.hazards:HappensBefore.wait",
        instead=instead.returns(None),
    ),
    Break(
        name="no-hazard-is-reported",
        suite="suites/unit/stream/test_hazards.py",
        red="test_two_streams_are_not_ordered_by_the_host_that_submits_to_both",
        at="engine.stream.hazards:HappensBefore._report",
        instead=instead.returns(None),
    ),
    Break(
        name="no-step-runs-ahead",
        suite="suites/unit/stream/test_log.py",
        red="test_lookahead_is_what_its_definition_says",
        at="engine.stream.log:OperationLog.lookahead",
        instead=instead.returns(0),
    ),
    Break(
        name="a-lagging-stream-runs-at-submit",
        suite="suites/unit/stream/test_policies.py",
        red="test_lag_runs_the_lagging_stream_only_as_far_as_someone_waits",
        at="engine.stream.policies:Lag.submitted",
        instead=instead.value(lambda policy, queues, operation: queues.run_through(operation)),
    ),
    Break(
        name="every-policy-is-immediate",
        suite="suites/unit/stream/test_programs.py",
        red="test_the_programs_can_tell_a_schedule_from_another",
        at="engine.stream.policies:cooperative_policy",
        instead=lambda right: lambda policy, ranks: right(policy.parse("immediate"), ranks),
    ),
    Break(
        name="late-reads-are-not-seen",
        suite="suites/unit/stream/test_mistakes.py",
        red="test_the_mistake_is_reported_under_every_policy",
        at="engine.stream.hazards:HappensBefore.ran",
        instead=instead.returns(None),
    ),
    Break(
        name="streams-do-not-wait",
        suite="suites/unit/stream/test_host.py",
        red="test_a_stream_waits_for_another",
        at="engine.stream.host:HostDevice.hold",
        instead=instead.returns(None),
    ),
    Break(
        name="the-hosts-writes-are-not-seen",
        suite="suites/unit/stream/test_cuda.py",
        red="test_restaging_without_a_fence_is_a_hazard",
        at="engine.stream.hazards:HappensBefore.host_access",
        instead=instead.returns(None),
    ),
)
