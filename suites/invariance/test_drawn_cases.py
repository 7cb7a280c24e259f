"""Chunk size and company change no bit: two dozen drawn cases, and a thousand in `nightly`.

Passes wrongly if the drawn prompts were never cut where a sum's order could depend on it. Ruled out
by suites/meta/test_suites_can_fail.py: `means-are-summed-chunk-by-chunk`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.figures import show
from suites.invariance.drawn import HEADINGS, Count, Setting, rows, run

EAGER = Setting(mode="eager", dtype="float32", pooling="LAST")
MEAN = Setting(mode="eager", dtype="float32", pooling="MEAN")
COMPILED = Setting(mode="compiled", dtype="float32", pooling="MEAN")


def check(model: Path, groups: dict[Setting, int]) -> None:
    counts: list[tuple[Setting, Count]] = []
    for seed, (setting, cases) in enumerate(groups.items()):
        counts.append((setting, run(model, setting, cases=cases, seed=seed, device="cpu")))
    show("batch_invariant on a CPU", HEADINGS, rows(counts))
    for setting, count in counts:
        assert not count.differing, (str(setting), count.differing)
        assert count.compared == (10 if setting.pooling == "LAST" else 9) * count.cases
        assert count.chunked > 0
        assert count.shared > 0
        assert (count.hits > 0) == (setting.pooling == "LAST")


def test_two_dozen(tiny_qwen3: Path) -> None:
    check(tiny_qwen3, {EAGER: 12, MEAN: 12})


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_thousand(tiny_qwen3: Path) -> None:
    check(tiny_qwen3, {EAGER: 350, MEAN: 350, COMPILED: 300})
