"""Other projects' rules, each on both sides of its limit.

Passes wrongly if a rule accepted or refused everything. Ruled out by
`test_a_cosine_is_held_to_its_limit_and_sees_no_scale` and the tests beside it, which ask just
within and just beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from harness.judge.output import Output, OutputKind
from harness.judge.rivals import RIVALS, accepts

BY_NAME = {rival.name: rival for rival in RIVALS}
COSINES = {"cosine 1e-2": 1e-2, "cosine 1e-3": 1e-3, "cosine 1e-5": 1e-5}


def accepted(
    name: str, a: Sequence[float], b: Sequence[float], kind: str, dtype: str = "float64"
) -> bool:
    sides = ([Output.of(np.array(x, dtype=dtype))] for x in (a, b))
    return accepts(BY_NAME[name], OutputKind(kind), *sides)


@pytest.mark.parametrize(("name", "limit"), COSINES.items())
def test_a_cosine_is_held_to_its_limit_and_sees_no_scale(name: str, limit: float) -> None:
    for share, within in ((0.99, True), (1.01, False)):
        angle = math.acos(1 - share * limit)
        turned = [3 * math.cos(angle), 3 * math.sin(angle)]
        assert accepted(name, [1.0, 0.0], turned, "embedding") is within, share


@pytest.mark.parametrize(("name", "limit"), COSINES.items())
def test_a_number_is_held_to_the_same_share_of_itself(name: str, limit: float) -> None:
    for sign in (1, -1):
        for share, within in ((0.99, True), (1.01, False)):
            value = 2.0 * (1 + sign * share * limit)
            assert accepted(name, [2.0], [value], "score") is within, (sign, share)
            assert accepted(name, [-2.0], [-value], "logit") is within, (sign, share)


def test_assert_close_adds_an_absolute_and_a_relative_part() -> None:
    """The defaults of torch.testing for each dtype: (rtol, atol)."""
    defaults = {"float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "float16": (1e-3, 1e-5)}
    for dtype, (rtol, atol) in defaults.items():
        for size in (0.0, 4.0) if dtype != "float16" else (4.0,):
            for share, within in ((0.7, True), (1.5, False)):
                for sign in (1, -1):
                    off = sign * share * (atol + rtol * size)
                    got = accepted("assert_close", [size], [size + off], "score", dtype)
                    assert got is within, (dtype, size, off)
    # One step of bfloat16 at 1 is 2**-7, below its rtol; three are beyond it.
    bits = [np.array([0x3F80 + steps], dtype=np.uint16) for steps in (0, 2, 3)]
    one, near, far = ([Output.of(x, "bfloat16")] for x in bits)
    assert accepts(BY_NAME["assert_close"], OutputKind.SCORE, one, near)
    assert not accepts(BY_NAME["assert_close"], OutputKind.SCORE, one, far)


def test_bits_are_bits_and_nan_is_no_answer() -> None:
    assert accepted("bitwise", [1.0, 2.0], [1.0, 2.0], "embedding")
    assert not accepted("bitwise", [1.0, 0.0], [1.0, -0.0], "embedding")
    assert not accepted("bitwise", [1.0, math.nan], [1.0, math.nan], "embedding")
    assert not accepted("bitwise", [1.0, math.inf], [1.0, math.inf], "embedding")


@pytest.mark.parametrize("name", BY_NAME)
def test_every_prompt_counts_and_structure_must_agree(name: str) -> None:
    right, wrong = Output.of(np.ones(4)), Output.of(np.array([1.0, -1.0, 1.0, -1.0]))
    kind, rule = OutputKind.EMBEDDING, BY_NAME[name]
    assert accepts(rule, kind, [right, right], [right, right])
    assert not accepts(rule, kind, [right, right], [right, wrong])
    assert not accepts(rule, kind, [right, right], [wrong, right])
    assert not accepts(rule, kind, [right], [right, right])
    assert not accepts(rule, kind, [right], [Output.of(np.ones(3))])
    assert not accepts(rule, kind, [right], [Output.of(np.ones(4, dtype=np.float32))])
