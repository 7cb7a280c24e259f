"""A thousand drawn cases on the GPU: chunk size and company change no bit.

Passes wrongly if the count that it asks for saw no bit that differs. Ruled out by
suites/meta/test_suites_can_fail.py::test_a_broken_suite_is_red, which breaks what
suites/invariance/test_drawn_cases.py counts in the same way.
"""

from __future__ import annotations

import pytest

from engine.errors import ConfigurationError
from engine.models import load_model
from harness.checkpoints.catalogue import path_of
from suites.figures import show
from suites.invariance.drawn import HEADINGS, Setting, rows, run

GROUPS = {
    Setting(mode="eager", dtype="float32", pooling="LAST"): 200,
    Setting(mode="eager", dtype="bfloat16", pooling="MEAN"): 200,
    Setting(mode="compiled", dtype="float32", pooling="MEAN"): 200,
    Setting(mode="compiled", dtype="bfloat16", pooling="LAST"): 200,
    Setting(mode="graph", dtype="float16", pooling="LAST"): 200,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("setting", GROUPS, ids=str)
def test_a_thousand_cases(setting: Setting) -> None:
    """Every group is a test of its own, so that workers share them."""
    cases, seed = GROUPS[setting], list(GROUPS).index(setting)
    count = run(path_of("tiny-qwen3"), setting, cases=cases, seed=seed, device="cuda")
    show(
        f"batch_invariant on a GPU, {cases} of {sum(GROUPS.values())} cases",
        HEADINGS,
        rows([(setting, count)]),
    )
    assert not count.differing, count.differing[:10]
    assert count.compared == (10 if setting.pooling == "LAST" else 9) * count.cases
    assert count.chunked > 0
    assert count.shared > 0
    assert (count.hits > 0) == (setting.pooling == "LAST")


def test_there_are_a_thousand() -> None:
    assert sum(GROUPS.values()) == 1000


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({}, "Choose attention='triton' and kernels='triton'"),
        ({"attention": "triton"}, "Choose attention='triton' and kernels='triton'"),
        ({"dtype": "float64"}, "dtype='float64'"),
    ],
)
def test_what_fixes_no_order_is_refused(choice: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_model(path_of("tiny-qwen3"), device="cuda", batch_invariant=True, **choice)
