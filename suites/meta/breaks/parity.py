"""Breaks of `suites/parity`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _by_number_of_rows(final_norm: Callable[..., Any]) -> Callable[..., Any]:
    """`Stage.final_norm`, whose last bits depend on how many rows the step has."""
    return lambda stage, x: final_norm(stage, x) * (1 + (len(x) % 3) * 2.0**-22)


def _last_stage_only(post_step: Callable[..., None]) -> Callable[..., None]:
    """`Runner.post_step`, left out on the first of several stages."""

    def function(runner: Any, plan: Any) -> None:
        if runner.is_last:
            post_step(runner, plan)

    return function


def _by_length(
    token_ids: Sequence[int], type_ids: Sequence[int], *, block_size: int, context: str
) -> tuple[str, ...]:
    """Keys of blocks, the same for all prompts."""
    return tuple(f"{context} {n}" for n in range(block_size, len(token_ids) + 1, block_size))


BREAKS: Final = (
    Break(
        name="the-last-norm-counts-the-steps-rows",
        suite="suites/parity/test_batch_invariant.py",
        red="test_chunk_size_changes_no_bit",
        at="engine.stage:Stage.final_norm",
        instead=_by_number_of_rows,
    ),
    Break(
        name="nothing-is-refused-beforehand",
        suite="suites/parity/test_every_axis.py",
        red="test_what_is_refused_is_refused_at_start_up_with_the_reason",
        at="harness.systems.engine:EngineSystem.refusal",
        instead=instead.returns(None),
    ),
    Break(
        name="the-first-stage-does-not-count",
        suite="suites/parity/test_families.py",
        red="test_two_stages_change_no_bit",
        at="engine.runner:Runner.post_step",
        instead=_last_stage_only,
    ),
    Break(
        name="all-prefixes-of-a-length-are-one",
        suite="suites/parity/test_memory.py",
        red="test_only_answers_of_the_last_row_read_the_cache",
        at="engine.kv.prefix:block_keys",
        instead=instead.value(_by_length),
    ),
)
