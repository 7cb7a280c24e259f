"""The engine's own option, `device`: what it changes, and what is refused.

Passes wrongly if a setting that is to make the device compute late made copies late instead. Ruled
out by suites/meta/test_suites_can_fail.py: `every-lag-is-of-copies`.
"""

from __future__ import annotations

import pytest
import torch

from harness.axes import inline
from harness.systems.base import SystemUnavailable
from harness.systems.engine import CUDA_SETTINGS, EngineSystem, engine
from harness.systems.lagging import LAGS
from suites.unit.systems.assignments import assignment

CELL = {"compile": "eager", "chunk": "whole", "async": "sync", "pp": "1"}


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, **changes: object) -> EngineSystem:
    """A system on a device that this machine need not have: nothing is started."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return engine(assignment(options={"device": "cuda"}, **changes))


def test_a_gpu_lags_instead_of_being_steered(monkeypatch: pytest.MonkeyPatch) -> None:
    system = on_a_gpu(monkeypatch, settings=({"stream_policy": "lag(copy@last)"},))
    assert system.settings == CUDA_SETTINGS
    assert {settings["lag"] for settings in CUDA_SETTINGS} == {*LAGS}
    for settings in CUDA_SETTINGS:
        config = system.config(CELL, inline(settings))
        assert (config.device, str(config.stream)) == ("cuda", "threaded")
        assert config.plugins == (LAGS[settings["lag"]],)
        assert config.execution.attention == "triton", "others wait for the device"
        assert config.execution.kernels == "torch"


def test_batch_invariance_takes_its_kernels_along(monkeypatch: pytest.MonkeyPatch) -> None:
    system = on_a_gpu(monkeypatch, batch_invariant=True)
    assert system.config(CELL, {}).execution.kernels == "triton"


def test_without_the_option_nothing_changes() -> None:
    system = engine(assignment(settings=({"stream_policy": "immediate"},)))
    config = system.config(CELL, system.settings[0])
    assert (config.device, str(config.stream), config.plugins) == ("cpu", "immediate", ())
    assert (config.execution.attention, config.execution.kernels) == ("sdpa", "torch")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, r"device=cpu\|cuda and no other, got device=tpu"),
        ({"device": "cpu", "speed": 2}, "no other, got device=cpu, speed=2"),
        ({"device": "cuda"}, "finds no usable CUDA device. Leave the option out"),
    ],
)
def test_what_cannot_be_had_is_said(
    options: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemUnavailable, match=message):
        engine(assignment(options=options))
