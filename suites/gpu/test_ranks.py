"""Tensor and pipeline ranks: on one device in one process, and with NCCL on a device each.

Passes wrongly if each tensor rank did the whole layer, or a sum that waits for no peer were no
hazard. Ruled out by `test_two_tensor_ranks_of_one_device`, which wants other bits than one rank's,
and
suites/parity/test_tensor_parallel.py::test_a_sum_that_does_not_wait_for_its_peers_is_a_hazard.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.engine import RunResult
from engine.errors import ConfigurationError
from suites.figures import show
from suites.gpu.ways import LAYERS, LIMIT, Way, differing, errors, run

NAME = "tiny-qwen3"
DEVICES = torch.cuda.device_count()
two_devices = pytest.mark.skipif(
    DEVICES < 2, reason=f"NCCL wants a device for each of two ranks, found {DEVICES}"
)


def attest(found: RunResult, *, stages: int, compiled: bool) -> None:
    """Every rank summed twice a layer and step, over two summands."""
    assert len(found.witness.ranks) == 2 * stages
    for rank in found.witness.ranks:
        assert rank.reductions == 2 * len(found.plan) * LAYERS // stages
        assert rank.summands == 2 * rank.reductions
        assert (rank.compiled_calls > 0) == compiled


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_two_tensor_ranks_of_one_device(mode: str, dtype: str) -> None:
    base = Way(mode=mode, dtype=dtype, chunk=16)
    one = run(NAME, base)
    two = run(NAME, replace(base, tensor_ranks=2), like=one)
    attest(two, stages=1, compiled=mode == "compiled")
    show(
        f"{NAME}, {mode}, {dtype}: relative L2 against float64, the largest",
        ("TP=1", "TP=2"),
        [(max(errors(one, NAME)), max(errors(two, NAME)))],
    )
    assert max(errors(two, NAME)) <= LIMIT[getattr(torch, dtype)]
    # Sums in another order are other sums: the same bits would mean that nothing was divided.
    assert differing(one, two)
    for asynchronous, stages in ((False, 2), (True, 1), (True, 2)):
        way = replace(
            base,
            tensor_ranks=2,
            stages=stages,
            asynchronous=asynchronous,
            inputs="ring" if asynchronous else "fenced",
        )
        other = run(NAME, way, like=one)
        attest(other, stages=stages, compiled=mode == "compiled")
        assert differing(two, other) == [], way


@two_devices
@pytest.mark.parametrize(
    ("mode", "stages", "tensor_ranks"),
    [
        ("eager", 2, 1),
        ("compiled", 2, 1),
        ("graph", 2, 1),
        ("eager", 1, 2),
        ("compiled", 1, 2),
    ],
)
def test_processes_with_nccl_answer_as_ranks_inline(
    mode: str, stages: int, tensor_ranks: int
) -> None:
    """A device each: NCCL refuses two ranks of one device.

    Eager, to the bit. Compiled code is each process's own on a GPU: its answers had other bits than
    those of ranks inline on two H200s, so they are held to float64, and how many differ is printed.
    """
    base = Way(mode=mode, chunk=16, stages=stages, tensor_ranks=tensor_ranks)
    inline, table = run(NAME, base), []
    for asynchronous in (False, True):
        way = replace(
            base,
            executor="processes",
            asynchronous=asynchronous,
            inputs="ring" if asynchronous else "fenced",
        )
        found = run(NAME, way, like=inline)
        assert len(found.witness.pids) == 2
        if tensor_ranks == 2:
            attest(found, stages=1, compiled=mode == "compiled")
        other = differing(inline, found)
        table.append(
            (mode, stages, tensor_ranks, str(asynchronous), len(other), max(errors(found, NAME)))
        )
        assert not other or mode != "eager", way
    show(
        "processes over NCCL: answers with other bits than inline, and the largest relative L2",
        ("mode", "stages", "tensor ranks", "async", "other bits", "off float64"),
        table,
    )
    assert max(row[-1] for row in table) <= LIMIT[torch.float32]


def test_more_processes_than_devices_are_refused() -> None:
    stages = DEVICES // 2 + 1
    if stages > LAYERS:
        pytest.skip(f"{NAME} has {LAYERS} layers, too few for more ranks than {DEVICES} devices")
    way = Way(stages=stages, tensor_ranks=2, executor="processes")
    with pytest.raises(ConfigurationError, match=f"a device for each rank, .* has {DEVICES}"):
        run(NAME, way)
