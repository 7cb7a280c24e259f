"""Plug-ins that take one rule of ownership out of the engine, to see what catches its absence."""

from __future__ import annotations

from collections.abc import Callable

from engine.runner import Runner
from harness.faults.base import replace_method


def without_fence(runner: Runner) -> Callable[[], None]:
    """Staging buffers are handed back to the host at once, read by the device or not."""
    return replace_method(runner, "fence_inputs", lambda staging, plan: None)


def without_awaited_send(runner: Runner) -> Callable[[], None]:
    """A stage writes its hidden states again whether or not the next one has taken them."""
    return replace_method(runner, "await_send", lambda: None)
