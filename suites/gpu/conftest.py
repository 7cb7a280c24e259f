"""Leaves these tests out, and says so, where there is no CUDA device."""

from __future__ import annotations

import torch

PRESENT = torch.cuda.is_available()
collect_ignore_glob = [] if PRESENT else ["test_*.py"]


def pytest_report_collectionfinish() -> str:
    """The device, or that there is none."""
    if not PRESENT:
        return "suites/gpu left out: torch finds no CUDA device"
    return f"suites/gpu on {torch.cuda.get_device_name()}, torch {torch.__version__}"
