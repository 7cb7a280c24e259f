"""Outputs on disk: what is read has the bits and the dtype of what was written.

Passes wrongly if the bits were compared and not what they stand for. Ruled out by
suites/meta/test_suites_can_fail.py: `bfloat16-is-read-as-float16`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.campaign.outputs import OutputStore
from harness.judge.output import BITS, Output


@pytest.mark.parametrize("dtype", BITS)
def test_bits_and_dtype_survive(dtype: str, tmp_path: Path) -> None:
    bits = np.arange(6, dtype=BITS[dtype]).reshape(2, 3)
    data = bits if dtype == "bfloat16" else bits.view(dtype)
    store = OutputStore(tmp_path)
    name, _ = store.write([Output.of(data, dtype)])
    (found,) = store.read(name)
    assert (found.dtype, found.shape) == (dtype, (2, 3))
    assert np.array_equal(found.bits, bits)
