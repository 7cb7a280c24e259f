"""The engine on a GPU against float64 on the CPU, and against itself under replayed plans.

Passes wrongly if the limits, which are wide, let another prompt's answer through, or steps that
share buffers unfenced gave the same bits. Ruled out by
`test_another_prompts_answer_is_beyond_every_limit` and
suites/parity/test_exactness.py::test_without_the_fence_a_lagging_device_reads_other_inputs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.config import ATTENTION_BACKENDS, EXECUTION_MODES
from harness.systems.lagging import LAGS
from suites.figures import show
from suites.gpu.ways import LAYERS, LIMIT, Way, differing, errors, exact, run

MODELS = ("tiny-qwen3", "tiny-llama", "tiny-bert")


@pytest.mark.parametrize("name", MODELS)
def test_another_prompts_answer_is_beyond_every_limit(name: str) -> None:
    """Two embeddings exchanged, on the CPU: the limits are wide, and not so wide."""
    right = exact(name)
    outputs = dict(right.outputs)
    outputs["0"], outputs["2"] = outputs["2"], outputs["0"]
    assert max(errors(right, name)) == 0
    assert max(errors(replace(right, outputs=outputs), name)) > max(LIMIT.values())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_float64(name: str, dtype: str) -> None:
    table = []
    for mode in EXECUTION_MODES:
        for attention, kernels in (("sdpa", "torch"), ("triton", "torch"), ("triton", "triton")):
            for chunk in (None, 16) if name != "tiny-bert" else (None,):
                way = Way(mode=mode, attention=attention, kernels=kernels, dtype=dtype, chunk=chunk)
                result = run(name, way)
                if mode != "graph":  # a CUDA graph does not come back to the compiled callable
                    assert (result.witness.compiled_calls > 0) == (mode == "compiled")
                assert bool(result.witness.ranks[0].buckets) == (mode == "graph")
                assert (result.witness.max_chunks > 1) == (chunk is not None)
                found = errors(result, name)
                table.append((mode, attention, kernels, chunk or "whole", max(found)))
    show(
        f"{name}, {dtype}: relative L2 against float64, the largest of {len(found)} answers",
        ("mode", "attention", "kernels", "chunk", "error"),
        table,
    )
    assert max(row[-1] for row in table) <= LIMIT[getattr(torch, dtype)]


@pytest.mark.parametrize("mode", EXECUTION_MODES)
@pytest.mark.parametrize("attention", ATTENTION_BACKENDS)
def test_the_named_attention_is_the_one_that_ran(attention: str, mode: str) -> None:
    """Counted in the functions themselves, and of a replayed graph as it was recorded."""
    found = run("tiny-qwen3", Way(mode=mode, attention=attention, chunk=16))
    (rank,) = found.witness.ranks
    calls, layers = rank.attention_calls, len(found.plan) * LAYERS
    assert set(calls) == {attention}
    # Triton's takes a whole step at once, the others a prompt's rows.
    assert calls[attention] == layers if attention == "triton" else calls[attention] >= layers
    assert max(errors(found, "tiny-qwen3")) <= LIMIT[torch.float32]


@pytest.mark.parametrize("mode", EXECUTION_MODES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("chunk", [None, 16])
def test_the_same_plan_gives_the_same_bits(mode: str, dtype: str, chunk: int | None) -> None:
    name, base = "tiny-qwen3", Way(mode=mode, dtype=dtype, chunk=chunk)
    first = run(name, base)
    for other in (
        base,
        replace(base, asynchronous=True),
        replace(base, stages=2),
        replace(base, stages=2, asynchronous=True, inputs="ring"),
    ):
        again = run(name, other, like=first)
        assert again.witness.plan_digest == first.witness.plan_digest
        assert differing(first, again) == [], other


@pytest.mark.parametrize("lag", LAGS)
def test_steps_overlap_when_scheduling_is_asynchronous(lag: str) -> None:
    """The host submits a step before the one before it is done; the sync run never does."""
    sync, overlapped = (
        run("tiny-qwen3", Way(chunk=16, asynchronous=on, plugins=(LAGS[lag],)))
        .witness.ranks[0]
        .lookahead
        for on in (False, True)
    )
    assert sync == 0
    assert overlapped > 0


def test_answers_arrive_in_memory_of_the_callers_own() -> None:
    result = run("tiny-qwen3", Way(asynchronous=True))
    places = set()
    for output in result.outputs.values():
        assert output.values.device.type == "cpu"
        places.add(output.values.untyped_storage().data_ptr())
    assert len(places) == len(result.outputs)
