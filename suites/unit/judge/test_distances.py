"""When two sides are too far apart, at the edge of each bound; and the least bound that would do.

Passes wrongly if both sides of an edge gave the same. Ruled out by
`test_a_side_at_its_bound_is_not_beyond_it` and `test_what_is_needed_is_where_the_failure_begins`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.judge.against_oracle import least_cap
from harness.judge.bounds import Bound
from harness.judge.distances import Distances, furthest
from harness.judge.metrics import error
from harness.judge.output import OutputKind
from harness.judge.tolerance import TWIN_LIFT, BucketKey
from suites.unit.judge.pairs import World, rounded

KEY = BucketKey("sample", "float32", OutputKind.EMBEDDING, "1-32")


def of(
    a: float,
    b: float,
    apart: float,
    *,
    oracle: float = 1.0,
    k: float = 4.0,
    null: float | None = None,
    good: float | None = None,
) -> Distances:
    bound = Bound(oracle=oracle, null=null, why="test", k=k, known_good=good)
    return Distances(key=KEY, prompt=0, apart=apart, a=a, b=b, bound=bound)


def test_a_side_at_its_bound_is_not_beyond_it() -> None:
    assert not of(0.5, 1.0, 9.0).failed
    assert of(0.5, 1.25, 9.0).failed
    assert of(1.25, 0.5, 9.0).failed
    assert of(math.nan, 0.5, 9.0).failed


def test_two_sides_that_share_their_error_are_no_finding() -> None:
    """The share of a bound with k = 4 is three quarters."""
    assert not of(2.0, 2.0, 0.75).failed
    assert of(2.0, 2.0, 0.76).failed
    assert of(2.0, 2.0, 1.5, oracle=2.0).beyond_oracle is False
    assert of(2.5, 2.5, 1.6, oracle=2.0).beyond_oracle is True


def test_a_null_that_holds_excuses_and_one_that_was_not_measured_does_not() -> None:
    far = of(2.0, 2.0, 0.875)
    assert far.beyond_null is None
    assert far.failed
    held = of(2.0, 2.0, 0.875, null=0.875)
    assert held.beyond_null is False
    assert not held.failed
    beyond = of(2.0, 2.0, 0.875, null=0.75)
    assert beyond.beyond_null is True
    assert beyond.failed


def test_severity_is_in_bounds_where_there_is_one() -> None:
    assert of(1.0, 3.0, 7.0, oracle=2.0).severity == 1.5
    assert of(3.0, 1.0, 7.0, oracle=4.0).severity == 0.75
    assert of(3.0, 1.0, 7.0, oracle=0.0).severity == 7.0


@pytest.mark.parametrize(
    ("found", "needed"),
    [
        (of(2.0, 3.0, 9.0), 3.0),
        (of(2.0, 3.0, 1.5), 2.0),  # 1.5 / 0.75
        (of(2.0, 3.0, 1.5, k=1.0), 3.0),  # no share: nothing is excused
        (of(2.0, 3.0, 1.5, good=1.5), 1.5),
        (of(2.0, 3.0, 1.5, good=1.25), 2.0),
        (of(2.0, 3.0, 1.5, good=1.75), 1.5),
        (of(0.25, 0.5, 1.5, good=1.75), 0.5),
    ],
)
def test_the_least_bound_under_which_a_prompt_does_not_fail(
    found: Distances, needed: float
) -> None:
    assert found.needed == needed


def test_what_is_needed_is_where_the_failure_begins() -> None:
    for apart in (0.5, 1.0, 2.0, 5.0):
        found = of(2.0, 3.0, apart)
        at = replace(found, bound=replace(found.bound, oracle=found.needed))
        below = replace(found, bound=replace(found.bound, oracle=0.99 * found.needed))
        assert (at.failed, below.failed) == (False, True), apart


def test_the_furthest_is_one_that_fails_if_any_does() -> None:
    fails, worse = of(1.5, 1.0, 9.0), of(4.0, 4.0, 0.5)
    assert (fails.failed, worse.failed) == (True, False)
    assert worse.severity > fails.severity
    assert furthest([worse, fails, of(0.1, 0.1, 0.0)]) is fails
    assert furthest([of(0.1, 0.1, 0.0), worse]) is worse


def test_the_least_cap_is_the_worst_error_that_no_twin_excuses() -> None:
    world = World.of("embed", normalize=False)
    kind, truth = world.subject.kind, world.truth
    base = (*rounded(truth, size=1e-3)[:1], *rounded(truth, size=4e-3, seed=8)[1:2], *truth[2:])
    own = [error(kind, x, o) for x, o in zip(base, truth, strict=True)]

    def least(twin: object) -> float:
        return least_cap(world.subject, base, truth, twin, world.bounds)  # type: ignore[arg-type]

    assert least(None) == own[1] > own[0] > own[2] == 0
    k = world.bounds.rules.cap("float32", kind).k
    for size, excused in ((1.01 * 4e-3 / k, True), (0.99 * 4e-3 / k, False)):
        twin = rounded(truth, size=size, dtype="float64")
        others = own[0] / (TWIN_LIFT if excused or size * k > own[0] else 1)
        worst = max(own[1] / TWIN_LIFT if excused else own[1], others)
        assert least(twin) == pytest.approx(worst), size
