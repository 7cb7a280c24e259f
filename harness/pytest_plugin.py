"""The pytest plug-in: reproducible arithmetic, checked ledgers, one seed, one Hypothesis profile.

Importing this module pins MKL's code path. It therefore has to be imported before torch, which
`conftest.py` sees to; `pin_arithmetic` refuses to pretend when it comes too late.

Owns: the `--parity-seed` option and the Hypothesis profiles of a test run.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

DEFAULT_SEED: Final = 0
"""Seed of a run that was given none: two runs of one commit draw the same cases."""

MKL_CBWR: Final = "AUTO,STRICT"
"""MKL conditional numerical reproducibility: products stop depending on row count and threads."""


def pin_arithmetic() -> None:
    """Set `MKL_CBWR` for this process and its children, keeping a value the caller chose.

    Raises:
        pytest.UsageError: torch is loaded already, so MKL has read its environment without it.
    """
    if "MKL_CBWR" in os.environ:
        return
    if "torch" in sys.modules:
        raise pytest.UsageError(
            f"expected MKL_CBWR={MKL_CBWR} to be set before torch is imported, got torch loaded "
            f"without it; run pytest from the repository root, or set it in the environment"
        )
    os.environ["MKL_CBWR"] = MKL_CBWR


pin_arithmetic()

# The engine's own, whose name is spelled out here: this module may not know the engine. Inherited
# by every process that a test starts; `make bench` measures without.
os.environ.setdefault("PARITY_CHECK_LEDGERS", "1")

# A case runs a model, so its time says nothing about the test: no deadline, no slowness check.
settings.register_profile(
    "parity",
    deadline=None,
    derandomize=False,  # said aloud, because Hypothesis' own default differs where CI is set
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# CI draws the same cases on every run and keeps no database: red means the commit, not the dice.
settings.register_profile(
    "parity-ci", parent=settings.get_profile("parity"), derandomize=True, database=None
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--parity-seed`; pytest-xdist hands its value to every worker."""
    parser.getgroup("parity").addoption(
        "--parity-seed",
        type=int,
        default=DEFAULT_SEED,
        metavar="N",
        help=f"seed of every drawn case (default {DEFAULT_SEED}; printed in the header)",
    )


def _profile(config: pytest.Config) -> str:
    """Name of the Hypothesis profile: fixed cases in CI, unless someone asks for a seed there."""
    fixed = bool(os.environ.get("CI")) and config.getoption("--parity-seed") == DEFAULT_SEED
    return "parity-ci" if fixed else "parity"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the Hypothesis profile and seed it from `--parity-seed`.

    Runs before Hypothesis' own hook, which reads `--hypothesis-seed` and
    `--hypothesis-profile`: what is given there wins.
    """
    profile = _profile(config)
    settings.load_profile(profile)
    if profile == "parity" and config.getoption("--hypothesis-seed") is None:
        # As text: Hypothesis skips its options altogether when all of them are falsy, 0 included.
        config.option.hypothesis_seed = str(config.getoption("--parity-seed"))


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed and what reproduces the run."""
    seed: int = config.getoption("--parity-seed")
    switches = ", ".join(f"{n}={os.environ[n]}" for n in ("MKL_CBWR", "PARITY_CHECK_LEDGERS"))
    return (
        f"parity: seed {seed} (again with --parity-seed={seed}), "
        f"hypothesis profile {_profile(config)}, {switches}"
    )


@pytest.fixture(scope="session")
def parity_seed(pytestconfig: pytest.Config) -> int:
    """The run's seed, for tests that draw without Hypothesis."""
    seed: int = pytestconfig.getoption("--parity-seed")
    return seed
