"""Breaks of `suites/unit/systems`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _in_order_of_arrival(_: Callable[..., Any]) -> Callable[..., Any]:
    """`rows`, which believes that a server answers in the order it was asked in."""

    def function(answer: Mapping[str, Any], count: int, *, member: str, listing: str) -> list[Any]:
        return [item[member] for item in answer[listing]]

    return function


def _since_the_start(ranks: Callable[..., Any]) -> Callable[..., Any]:
    """`ranks`, which takes nothing off for what ran before."""

    def function(
        before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], *, lookahead: int
    ) -> Any:
        none = [{**rank, "rows": [], "compiled": {}} for rank in before]
        return ranks(none, after, lookahead=lookahead)

    return function


def _unseen(_: Callable[..., Any]) -> Callable[..., Any]:
    """`as_computed`, which rounds whatever came back."""

    def function(output: Any, dtypes: Any) -> Any:
        (dtype,) = dtypes if len(dtypes) == 1 else (output.dtype,)
        if dtype == "bfloat16":
            return output.of((output.bits >> 16).astype("uint16"), dtype)
        return output.of(output.data.astype(dtype))

    return function


BREAKS: Final = (
    Break(
        name="an-answer-is-narrowed-unseen",
        suite="suites/unit/systems/test_served.py",
        red="test_what_the_dtype_does_not_hold_stays_float32",
        at="harness.systems.served:as_computed",
        instead=_unseen,
    ),
    Break(
        name="one-answer-to-everything-conforms",
        suite="suites/unit/systems/test_conformance.py",
        red="test_what_is_wrong_is_named",
        at="harness.systems.conformance:_alike",
        instead=instead.returns(False),  # noqa: FBT003
    ),
    Break(
        name="every-lag-is-of-copies",
        suite="suites/unit/systems/test_engine_options.py",
        red="test_a_gpu_lags_instead_of_being_steered",
        at="harness.systems.engine:LAGS",
        instead=lambda lags: dict.fromkeys(lags, lags["copy"]),
    ),
    Break(
        name="rows-are-taken-as-they-come",
        suite="suites/unit/systems/test_http.py",
        red="test_rows_come_in_the_order_of_their_indexes",
        at="harness.systems.wire:rows",
        instead=_in_order_of_arrival,
    ),
    Break(
        name="last-pooling-takes-the-first-row",
        suite="suites/unit/systems/test_references.py",
        red="test_transformers_is_right_in_a_padded_batch",
        at="harness.systems.hf:pooled",
        instead=instead.value(lambda states, pooling: states[0]),
    ),
    Break(
        name="installed-systems-are-not-asked-for",
        suite="suites/unit/systems/test_table.py",
        red="test_an_installed_package_may_offer_one",
        at="harness.systems.table:_offered",
        instead=instead.returns({}),
    ),
    Break(
        name="the-warm-up-counts-as-the-run",
        suite="suites/unit/systems/test_vllm.py",
        red="test_axes_read_the_counts_of_one_run",
        at="harness.systems.vllm.steps:ranks",
        instead=_since_the_start,
    ),
)
