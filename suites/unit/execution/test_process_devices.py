"""Ranks as processes on CUDA: one device each, or a message before anything is started.

Passes wrongly if the refusal came from a rank that had been started. Ruled out by
suites/meta/test_suites_can_fail.py: `ranks-are-not-counted-before-they-start`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.config import EngineConfig, ParallelConfig
from engine.errors import ConfigurationError
from engine.executor import ProcessExecutor
from engine.memory import RunnerLimits


def test_more_ranks_than_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    config = EngineConfig(
        model=Path("model"),
        device="cuda",
        parallel=ParallelConfig(
            pipeline_parallel_size=2, tensor_parallel_size=2, executor="processes"
        ),
    )
    limits = RunnerLimits(max_tokens=8, max_seqs=1, max_model_len=8, max_slots=1, num_blocks=1)
    with pytest.raises(ConfigurationError, match=r"4 ranks .*a device for each rank.* has 2\. Use"):
        ProcessExecutor(config, limits)
