"""One server for every test that leaves it as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.resources import Resources
from suites.unit.server.serving import Server, base_config, serving


@pytest.fixture(scope="session")
def resources() -> Resources:
    return Resources(base_config())


@pytest.fixture(scope="session")
def server(resources: Resources) -> Iterator[Server]:
    with serving(resources=resources) as started:
        yield started


@pytest.fixture(scope="session")
def offline(resources: Resources) -> Iterator[Engine]:
    with Engine(base_config(), resources=resources) as engine:
        yield engine
