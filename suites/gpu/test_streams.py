"""Order on a CUDA device that no operation of ours asks for by name.

Passes wrongly if a first launch waited for the whole device, which hides the lack of an order.
Ruled out by suites/unit/stream/test_cuda_order.py::test_every_run_begins_after_the_current_stream.
"""

from __future__ import annotations

import torch

from engine.config import StreamPolicy
from engine.stream import create_device


def test_a_runs_first_step_comes_after_what_its_host_did_before() -> None:
    """A rank makes its streams, then its buffers, which are filled on the current stream."""
    device = create_device("cuda", StreamPolicy(), 1)
    stream = device.stream("compute@0")
    buffer = torch.zeros(8, device="cuda")
    for value in (3, 4):  # a kernel's first launch may wait for the whole device
        buffer.fill_(value)
        torch.cuda._sleep(1)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    torch.cuda._sleep(400_000_000)  # type: ignore[no-untyped-call]
    buffer.fill_(1)  # late, as behind another engine's work
    device.begin_run()

    def write() -> None:
        buffer.fill_(2)

    stream.submit("write", write, step=0)
    device.drain()
    torch.cuda.synchronize()
    device.close()
    assert buffer.tolist() == [2] * 8
