"""Streams, events and devices: deterministic, steerable asynchrony."""

from __future__ import annotations

from engine.config import StreamPolicy
from engine.errors import ConfigurationError
from engine.stream.base import Buffer, Device, Event, Operation, OperationLog, Stream
from engine.stream.cuda import CudaDevice
from engine.stream.host import HostDevice

__all__ = [
    "Buffer",
    "Device",
    "Event",
    "Operation",
    "OperationLog",
    "Stream",
    "create_device",
]

DEVICES = ("cpu", "cuda")


def create_device(kind: str, policy: StreamPolicy, num_ranks: int) -> Device:
    """A device for ranks 0 to `num_ranks` - 1.

    Raises:
        ConfigurationError: `kind` is unknown or not usable here, or the policy does not fit it.
    """
    if kind == "cpu":
        return HostDevice(policy, num_ranks)
    if kind == "cuda":
        return CudaDevice(policy, num_ranks)
    raise ConfigurationError(f"device={kind!r}: expected one of {DEVICES}")
