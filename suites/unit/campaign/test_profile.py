"""Which checkpoints a profile runs: its own, and every generated one if it is named.

Passes wrongly if the checkpoints that are asked for were read from the profiles themselves. Ruled
out by suites/meta/test_suites_can_fail.py: `some-families-cannot-be-named`.
"""

from __future__ import annotations

import pytest

from harness.campaign.profile import PROFILES
from harness.campaign.spec import RunSpec
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.checkpoints.generate import GENERATORS
from harness.cli.errors import UsageError
from harness.cli.request import build_spec

WITH_REQUESTS = [name for name, profile in PROFILES.items() if profile.on_request]
"""The profiles of our own engine, which run what is generated for it if it is named."""
TINY = [name for name in GENERATORS if name.startswith("tiny-")]


def test_there_are_such_profiles_and_checkpoints() -> None:
    assert {"smoke", "pr"} <= set(WITH_REQUESTS)
    assert len(TINY) >= 9


def spec(profile: str, *models: str) -> RunSpec:
    made, notices = build_spec(
        profile=profile,
        only=None,
        models=list(models),
        cases=None,
        plants=[],
        seed=0,
        batch_invariant=False,
    )
    assert not [notice for notice in notices if models]
    return made


@pytest.mark.parametrize("profile", WITH_REQUESTS)
@pytest.mark.parametrize("name", TINY)
def test_every_generated_checkpoint_runs_when_it_is_named(profile: str, name: str) -> None:
    assert spec(profile, name).checkpoints == (name,)
    plan = spec(profile, name).plan(name)
    assert plan.max_model_len <= CHECKPOINTS[name].max_length
    assert ("score" in plan.tasks) == (CHECKPOINTS[name].reranker is not None)


def test_named_ones_do_not_run_by_themselves() -> None:
    for profile in (PROFILES[name] for name in WITH_REQUESTS):
        named = {plan.name for plan in profile.on_request}
        assert named
        assert not named & {plan.name for plan in profile.checkpoints}
    assert spec("smoke").checkpoints == ("tiny-qwen3", "tiny-bert")


def test_others_are_told_what_may_be_named() -> None:
    with pytest.raises(
        UsageError, match=r"no cases for smollm2; it runs .*if named .*tiny-mistral"
    ):
        spec("smoke", "smollm2")
