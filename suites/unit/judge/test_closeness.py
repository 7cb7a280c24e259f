"""What a comparison measures and says of two sides, in both tiers of it.

Passes wrongly if the numbers were those of another prompt, or told of the wrong side. Ruled out by
`test_bits_that_differ_are_counted_over_all_prompts` and `test_the_nearer_side_is_named`.
"""

from __future__ import annotations

import numpy as np

from harness.judge.bounds import Bound
from harness.judge.closeness import _warnings, bounded, exact, nearer
from harness.judge.distances import Distances
from harness.judge.output import Output, OutputKind
from harness.judge.tolerance import BucketKey
from harness.record import Tier
from suites.unit.judge.pairs import World, edited, rounded


def stepped(output: Output, elements: int, steps: int) -> np.ndarray:
    """The values with their first elements so many representable numbers further from zero."""
    values = output.data.copy()
    values.view(np.uint32).reshape(-1)[:elements] += np.uint32(steps)
    return values


def test_equal_bits_leave_two_measurements_at_their_bound() -> None:
    world = World.of("embed", normalize=False)
    found = exact(world.subject, world.base, world.base, world.truth)
    assert (found.failure, found.worst_prompt, found.warnings) == ("", None, ())
    assert [(m.metric, m.value, m.bound) for m in found.measurements] == [
        ("differing_elements", 0.0, 0.0),
        ("max_ulp", 0.0, 0.0),
    ]


def test_bits_that_differ_are_counted_over_all_prompts() -> None:
    world = World.of("embed", normalize=False)
    other = edited(world.base, 1, stepped(world.base[1], 3, 1))
    other = edited(other, 3, stepped(other[3], 5, 1))
    other = edited(other, 4, stepped(other[4], 7, 40))
    found = exact(world.subject, world.base, other, world.truth)
    assert found.worst_prompt == 4
    assert found.failure.startswith(
        "prompt 4: A and B differ in 15 elements by up to 40 ulp; against float64, A is nearer"
    )
    values = {m.metric: m.value for m in found.measurements}
    assert values["elements off by 1 ulp"] == 8
    assert values["elements off by 32-63 ulp"] == 7
    assert values["differing_elements"] == 15
    assert values["oracle_error"] > values["oracle_error_reference"]
    labels = [m.metric for m in found.measurements if m.metric.startswith("elements")]
    assert labels == ["elements off by 1 ulp", "elements off by 32-63 ulp"]
    drift = next(m for m in found.measurements if m.metric == "similarity_drift")
    assert (drift.bound, drift.value > 0) == (0.0, True)


def test_a_sign_of_zero_is_told_of_its_prompt() -> None:
    world = World.of("embed", normalize=False)
    rest = world.base[2].data[1:].tolist()
    a, b = (edited(world.base, 2, [zero, *rest]) for zero in (0.0, -0.0))
    found = exact(world.subject, a, b, None)
    assert found.failure == "prompt 2: A and B differ in 1 elements by up to 0 ulp"


def test_the_nearer_side_is_named() -> None:
    assert nearer(1.0, 1.0, "m") == "against float64, both are equally far (m 1)"
    assert nearer(1.0, 2.0, "m") == "against float64, A is nearer (m A 1, B 2)"
    assert nearer(2.0, 1.0, "m") == "against float64, B is nearer (m A 2, B 1)"


def test_only_vectors_have_a_direction_and_a_norm() -> None:
    for task, vector in (("embed", True), ("classify", False)):
        world = World.of(task, **({"normalize": False} if vector else {"activation": False}))
        found = bounded(
            world.subject,
            Tier.KERNEL,
            world.base,
            rounded(world.truth, seed=9),
            world.truth,
            world.bounds,
        )
        assert found.failure == ""
        names = {m.metric for m in found.measurements}
        assert ({"one_minus_cosine", "norm_ratio"} <= names) is vector
        first = found.measurements[0]
        assert first.why.startswith("distance of A and B, as a share") is vector


def of(kind: OutputKind, a: float, b: float, apart: float, null: float | None) -> Distances:
    key = BucketKey("sample", "float32", kind, "1-32")
    bound = Bound(oracle=1.0, null=null, why="test", k=4.0)
    return Distances(key=key, prompt=3, apart=apart, a=a, b=b, bound=bound)


def test_each_warning_has_its_case_and_a_failure_none() -> None:
    rows, whole = OutputKind.TOKEN_EMBEDDING, OutputKind.TOKEN_MATRIX
    for found, told in (
        (of(rows, 0.5, 0.5, 0.25, 0.125), "prompt 3: A and B are 0.25 apart, more than known-good"),
        (of(whole, 0.5, 0.5, 0.25, 0.125), "prompt 3, whole matrix: A and B are 0.25 apart"),
        (
            of(rows, 2.0, 0.5, 0.875, 0.875),
            "prompt 3: beyond the oracle bound (2 > 1), but A and B",
        ),
        (of(rows, 2.0, 3.0, 0.5, None), "prompt 3: A and B agree, and both are further from"),
    ):
        assert not found.failed
        (warning,) = _warnings([found])
        assert warning.startswith(told)
    assert _warnings([of(rows, 2.0, 0.5, 0.875, None), of(rows, 1.0, 1.0, 0.0, None)]) == ()
