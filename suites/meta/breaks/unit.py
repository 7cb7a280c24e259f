"""Breaks of the files that lie in `suites/unit` itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _without_waiting(acquire: Callable[..., Any]) -> Callable[..., Any]:
    """`Slots.acquire`, which forgets the fence before it would wait for it."""

    def function(slots: Any, host: str) -> Any:
        slots._fences[slots._next] = None
        return acquire(slots, host)

    return function


BREAKS: Final = (
    Break(
        name="staging-is-not-waited-for",
        suite="suites/unit/test_buffers.py",
        red="test_no_step_reads_another_steps_staging",
        at="engine.buffers:Slots.acquire",
        instead=_without_waiting,
    ),
    Break(
        name="entry-points-are-not-looked-at",
        suite="suites/unit/test_registry.py",
        red="test_a_name_is_given_once",
        at="harness.registry:Table._load",
        instead=instead.value(lambda table, point, found: point.load()),
    ),
    Break(
        name="names-and-shapes-are-not-compared",
        suite="suites/unit/test_weights.py",
        red="test_a_stage_that_does_not_hold_the_tensor_still_refuses",
        at="engine.weights:Checkpoint.check",
        instead=instead.returns(None),
    ),
    Break(
        name="the-poolers-ledger-is-not-checked",
        suite="suites/unit/test_ledgers.py",
        red="test_a_leak_is_an_error_in_its_step",
        at="engine.pooling.dispatcher:Pooler.check_integrity",
        instead=instead.returns(None),
    ),
    Break(
        name="the-probe-asks-nothing",
        suite="suites/unit/test_determinism.py",
        red="test_a_product_that_depends_on_the_number_of_rows_is_found",
        at="engine.determinism:_probes",
        instead=instead.returns(()),
    ),
    Break(
        name="segments-are-dropped",
        suite="suites/unit/test_tokenization.py",
        red="test_pairs_put_the_document_in_segment_one",
        at="engine.tokenization:Tokenizer.encode_pair",
        instead=instead.result(lambda prompt: replace(prompt, type_ids=())),
    ),
    Break(
        name="late-mutants-count-as-killed",
        suite="suites/unit/test_mutation.py",
        red="test_timeouts_and_the_untried_are_not_killed",
        at="suites.mutation.results:score",
        instead=instead.result(
            lambda found: replace(
                found, survivors=tuple(r for r in found.survivors if r.outcome != "timeout")
            )
        ),
    ),
)
