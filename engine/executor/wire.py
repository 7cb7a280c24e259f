"""Messages between the driver and its worker processes: JSON, with tensors as safetensors.

A message is an 8-byte little-endian length, that many bytes of JSON, then the safetensors blob
(possibly empty). No pickles.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from engine.plan import plan_from_json, plan_to_json
from engine.request import PoolingParams, PoolingRequest, Task
from engine.scheduler.base import Allocation, ScheduledStep

Message = dict[str, Any]


def send(
    connection: Connection, message: Message, tensors: Mapping[str, torch.Tensor] | None = None
) -> None:
    """Send one message. `tensors` must be contiguous CPU tensors."""
    head = json.dumps(message).encode()
    blob = save_tensors(dict(tensors)) if tensors else b""
    connection.send_bytes(struct.pack("<Q", len(head)) + head + blob)


def receive(connection: Connection) -> tuple[Message, dict[str, torch.Tensor]]:
    """Receive one message; blocks. Raises EOFError when the other side is gone."""
    data = connection.recv_bytes()
    (size,) = struct.unpack_from("<Q", data)
    message: Message = json.loads(data[8 : 8 + size])
    blob = data[8 + size :]
    return message, load_tensors(blob) if blob else {}


def step_to_json(step: ScheduledStep) -> Message:
    return {
        "index": step.plan.index,
        "dropped": list(step.dropped),
        "entries": plan_to_json([step.plan])[0],
        "allocations": {
            name: [a.slot, list(a.blocks), a.is_new] for name, a in step.allocations.items()
        },
    }


def step_from_json(data: Message) -> ScheduledStep:
    return ScheduledStep(
        plan=replace(plan_from_json([data["entries"]])[0], index=data["index"]),
        allocations={
            name: Allocation(slot=slot, blocks=tuple(blocks), is_new=is_new)
            for name, (slot, blocks, is_new) in data["allocations"].items()
        },
        dropped=tuple(data["dropped"]),
    )


def request_to_json(request: PoolingRequest) -> Message:
    return {
        "request_id": request.request_id,
        "token_ids": list(request.token_ids),
        "type_ids": list(request.type_ids),
        "task": str(request.task),
        "params": asdict(request.params),
    }


def request_from_json(data: Message) -> PoolingRequest:
    return PoolingRequest(
        request_id=data["request_id"],
        token_ids=tuple(data["token_ids"]),
        type_ids=tuple(data["type_ids"]),
        task=Task(data["task"]),
        params=PoolingParams(**data["params"]),
    )
