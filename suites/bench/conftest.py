"""Every cost is measured on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def all_cores() -> Iterator[None]:
    """An engine sets the threads of its process, also for whoever is measured after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    yield
    torch.set_num_threads(before)
