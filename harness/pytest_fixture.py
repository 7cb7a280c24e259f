"""The pytest plug-in of an installed pooling-parity: a `parity` fixture for anybody's own tests.

pytest finds it by its entry point and loads it in every run on the machine, so it imports next to
nothing and changes nothing: seed, Hypothesis profile and arithmetic of the project's own suites are
in `harness.pytest_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.parity_check import ParityCheck


@pytest.fixture(scope="session")
def parity() -> ParityCheck:
    """Judges an engine from a test: `parity.check(make, cases=20)`."""
    from harness.parity_check import ParityCheck  # noqa: PLC0415 - only who asks for it pays

    return ParityCheck()
