"""The generated models are not blind: an answer depends on all of the prompt that it can see.

Passes wrongly if answers were far apart by their last token alone. Ruled out by
suites/meta/test_suites_can_fail.py: `only-the-last-token-is-seen`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from harness.checkpoints.catalogue import CHECKPOINTS, path_of
from harness.checkpoints.generate import GENERATORS
from harness.judge.output import OutputKind
from harness.judge.tolerance import TABLE, length_bucket
from harness.oracle.oracle import Oracle
from harness.record import Tier

LENGTH, EARLY = 40, 10


@cache
def oracle(name: str) -> Oracle:
    return Oracle(path_of(name))


def prompt(seed: int) -> list[int]:
    """No special tokens."""
    return np.random.Generator(np.random.PCG64(seed)).integers(10, 1000, size=LENGTH).tolist()


def pooled(name: str, ids: list[int]) -> torch.Tensor:
    return oracle(name).embed(ids, CHECKPOINTS[name].pooling, normalize=True)


@pytest.mark.parametrize("name", GENERATORS)
def test_unrelated_prompts_are_far_apart(name: str) -> None:
    vectors = torch.stack([pooled(name, prompt(seed)) for seed in range(4)])
    cosines = (vectors @ vectors.T)[~torch.eye(4, dtype=torch.bool)]
    assert float(cosines.max()) < 0.9


@pytest.mark.parametrize("name", GENERATORS)
def test_one_early_token_moves_the_pooled_vector(name: str) -> None:
    """By a hundred times what two legitimate runs in float32 may differ by, and more."""
    bucket = length_bucket(LENGTH)
    tolerance = TABLE[Tier.REORDERED, "float32", OutputKind.EMBEDDING, bucket].floor
    ids = prompt(0)
    changed = [*ids[:EARLY], ids[EARLY] + 1, *ids[EARLY + 1 :]]
    assert float((pooled(name, ids) - pooled(name, changed)).norm()) > 100 * tolerance


def test_a_window_hides_what_is_beyond_it() -> None:
    """tiny-mistral: four layers of a window of 40 tokens see 157 tokens and not one more."""
    ids = np.random.Generator(np.random.PCG64(0)).integers(10, 1000, size=200).tolist()
    seen = 4 * (40 - 1)
    for distance, moves in ((seen, True), (seen + 1, False)):
        place = len(ids) - 1 - distance
        changed = [*ids[:place], ids[place] + 1, *ids[place + 1 :]]
        same = torch.equal(pooled("tiny-mistral", ids), pooled("tiny-mistral", changed))
        assert same != moves
