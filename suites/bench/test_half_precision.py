"""How far a trusted implementation in half precision is from float64: what its cap rests on.

Passes wrongly if Hugging Face were compared with itself, in float64 on both sides or in half
precision on both. Ruled out by `test_hugging_faces_own_error_is_half_the_cap`, which asks for
errors of a quarter of an epsilon at least.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness.checkpoints.catalogue import path_of
from harness.judge.output import OutputKind
from harness.judge.tolerance import EPSILON, ORACLE_CAP
from harness.oracle.oracle import Dtype, Oracle
from suites.figures import show

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]
NAMES = ("tiny-qwen3", "small-qwen3", "tiny-llama", "tiny-qwen2")
PROMPTS, LONGEST = 60, 120


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_hugging_faces_own_error_is_half_the_cap(dtype: Dtype) -> None:
    largest = []
    for name in NAMES:
        exact, half = (
            Oracle(path_of(name), dtype="float64"),
            Oracle(path_of(name), dtype=dtype, weights=dtype),
        )
        draw, errors = np.random.default_rng(0), []
        for _ in range(PROMPTS):
            ids = draw.integers(10, 1000, size=int(draw.integers(1, LONGEST))).tolist()
            truth, found = (o.embed(ids, "LAST", normalize=True).double() for o in (exact, half))
            errors.append(float((found - truth).norm() / truth.norm()))
        assert min(errors) > EPSILON[dtype] / 4
        largest.append((name, float(np.median(errors)), max(errors)))
    show(f"Hugging Face in {dtype} against float64", ("checkpoint", "median", "largest"), largest)
    cap = ORACLE_CAP[dtype, OutputKind.EMBEDDING].floor
    assert cap / 2.1 < max(error for *_, error in largest) <= cap / 2
