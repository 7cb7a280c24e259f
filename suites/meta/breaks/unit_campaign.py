"""Breaks of `suites/unit/campaign`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _as_float16(output: Callable[..., Any]) -> Callable[..., Any]:
    """`_output`, which reads the bits of a bfloat16 as those of a float16."""
    made = output.__globals__["Output"]
    return lambda array: made.of(array.view("float16") if array.dtype == "uint16" else array)


def _half_on_request(profiles: Mapping[str, Any]) -> dict[str, Any]:
    """The profiles, each with half of the checkpoints that run when they are named."""
    return {
        name: replace(profile, on_request=profile.on_request[::2])
        for name, profile in profiles.items()
    }


def _looser(found: Callable[..., Any]) -> Callable[..., Any]:
    """`_Needs.found`, whose bounds are a hundredth larger than they need be."""
    return lambda needs, name: [replace(n, needed=1.01 * n.needed) for n in found(needs, name)]


BREAKS: Final = (
    Break(
        name="the-array-has-no-further-axes",
        suite="suites/unit/campaign/test_array.py",
        red="test_the_array_has_every_axis_and_cases_of_its_own",
        at="harness.campaign.spec:SECONDARY",
        instead=instead.value(()),
    ),
    Break(
        name="changed-files-are-not-told",
        suite="suites/unit/campaign/test_manifest.py",
        red="test_a_run_knows_its_commit_and_whether_files_differ",
        at="harness.campaign.manifest:commit",
        instead=instead.result(lambda commit: commit.rstrip("+")),
    ),
    Break(
        name="bfloat16-is-read-as-float16",
        suite="suites/unit/campaign/test_outputs.py",
        red="test_bits_and_dtype_survive",
        at="harness.campaign.outputs:_output",
        instead=_as_float16,
    ),
    Break(
        name="one-token-of-a-chunk-is-changed",
        suite="suites/unit/campaign/test_perturb.py",
        red="test_every_token_of_the_chosen_chunk_changes_and_no_other",
        at="harness.campaign.perturb:_replaced",
        instead=lambda right: lambda prompt, first, count, pool: right(prompt, first, 1, pool),
    ),
    Break(
        name="some-families-cannot-be-named",
        suite="suites/unit/campaign/test_profile.py",
        red="test_every_generated_checkpoint_runs_when_it_is_named",
        at="harness.cli.request:PROFILES",
        instead=_half_on_request,
        by=("UsageError",),
    ),
    Break(
        name="the-least-bound-is-not-the-least",
        suite="suites/unit/campaign/test_rejudge.py",
        red="test_the_least_bound_passes_and_one_below_it_does_not",
        at="harness.campaign.rejudge:_Needs.found",
        instead=_looser,
    ),
    Break(
        name="pairs-of-a-planted-run-all-count-as-changed",
        suite="suites/unit/campaign/test_rivalry.py",
        red="test_false_alarms_come_from_clean_runs_and_kills_from_what_a_fault_changed",
        at="harness.campaign.rivalry:Compared.one_side_changed",
        instead=instead.returns(True),  # noqa: FBT003
    ),
)
