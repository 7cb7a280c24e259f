"""Leaves these tests out, and says so, where neither a GPU nor the interpreter can run them."""

from __future__ import annotations

from suites.kernels.where import DEVICE

collect_ignore_glob = [] if DEVICE else ["test_*.py"]


def pytest_report_collectionfinish() -> str:
    """Where the kernels run."""
    if not DEVICE:
        return "suites/kernels left out: no GPU, and TRITON_INTERPRET=1 is not set"
    return f"suites/kernels on {DEVICE}"
