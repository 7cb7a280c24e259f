"""A configuration that cannot be run is refused at start-up, with the choices that can.

Passes wrongly if a wrong value was kept until something else stumbled over it. Ruled out by
suites/meta/test_suites_can_fail.py: `values-are-not-looked-at`.
"""

from __future__ import annotations

import json

import pytest

from engine.config import (
    CacheConfig,
    EngineConfig,
    ExecutionConfig,
    ParallelConfig,
    SchedulerConfig,
    StreamPolicy,
    config_from_json,
    config_to_json,
)
from engine.engine import Engine
from engine.errors import CompilerUnavailableError, ConfigurationError
from harness.checkpoints.catalogue import path_of


def decoder(**changes: object) -> EngineConfig:
    return EngineConfig(model=path_of("tiny-qwen3"), **{"max_model_len": 64, **changes})


@pytest.mark.parametrize("budget", [0, -1])
def test_a_chunk_budget_below_one_token(budget: int) -> None:
    with pytest.raises(
        ConfigurationError,
        match=rf"max_num_batched_tokens={budget} is not valid: expected a chunk budget of at least",
    ):
        SchedulerConfig(max_num_batched_tokens=budget)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SchedulerConfig(max_num_seqs=0), "max_num_seqs=0 is not valid"),
        (lambda: CacheConfig(block_size=0), "block_size=0 is not valid"),
        (
            lambda: ExecutionConfig(mode="fast"),
            r"mode='fast' .* one of \('eager', 'compiled', 'graph'\)",
        ),
        (
            lambda: ExecutionConfig(mode="compiled", graph_buckets=(8,)),
            r"graph_buckets=\(8,\) is not valid: expected None with mode='compiled'",
        ),
        (
            lambda: ExecutionConfig(mode="graph", graph_buckets=(16, 8)),
            r"graph_buckets=\(16, 8\) is not valid: expected ascending row counts",
        ),
        (lambda: ExecutionConfig(mode="graph", graph_buckets=()), r"graph_buckets=\(\) is not"),
        (lambda: ParallelConfig(tensor_parallel_size=0), "tensor_parallel_size=0 is not"),
        (lambda: ExecutionConfig(dtype="int4"), r"dtype='int4' .* one of \('float32', "),
        (
            lambda: ParallelConfig(executor="ray"),
            r"executor='ray' .* \('inline', 'processes', 'torchrun'\)",
        ),
        (lambda: ParallelConfig(pipeline_parallel_size=0), "pipeline_parallel_size=0 is not"),
        (lambda: StreamPolicy.parse("lag(copy@lost)"), "lagging stream='copy@lost' is not valid"),
        (lambda: StreamPolicy.parse("lag(("), r"stream policy 'lag\(\(' is not NAME"),
        (lambda: decoder(pooling="MEDIAN"), r"pooling='MEDIAN' .* \('CLS', 'LAST', 'MEAN', "),
    ],
)
def test_a_value_that_is_wrong_on_its_own(make: object, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"parallel": ParallelConfig(pipeline_parallel_size=99)},
            r"pipeline_parallel_size=99 is more than the \d+ layers of tiny-qwen3; choose 1 to \d",
        ),
        (
            {"max_model_len": 10**6},
            r"max_model_len=1000000 is more than the 4096 positions of tiny-qwen3",
        ),
        (
            {"scheduler": SchedulerConfig(max_num_batched_tokens=8, chunked_prefill=False)},
            r"max_num_batched_tokens=8 cannot hold a prompt of max_model_len=64 in one step",
        ),
        (
            {"parallel": ParallelConfig(tensor_parallel_size=4)},
            r"tensor_parallel_size=4 does not divide .*2 key and value heads.*one of \[1, 2\]",
        ),
        (
            {"execution": ExecutionConfig(mode="graph", graph_buckets=(8, 32))},
            r"graph_buckets=\(8, 32\): a step may have 512 rows .*bucket of at least 512",
        ),
        (
            {
                "execution": ExecutionConfig(mode="graph"),
                "parallel": ParallelConfig(tensor_parallel_size=2),
            },
            r"mode='graph' with tensor_parallel_size=2: .*Use mode='compiled'",
        ),
        (
            {"parallel": ParallelConfig(executor="torchrun")},
            r"executor='torchrun' needs the environment variables \['RANK', .*torchrun --nproc",
        ),
        ({"plugins": ("harness.faults.absent:apply",)}, r"plugin='harness\.faults\.absent:apply'"),
        ({"plugins": ("harness.faults.base:absent",)}, r"has no callable 'absent'; it has \["),
    ],
)
def test_what_the_model_cannot_do_is_refused_at_start_up(
    changes: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Engine(decoder(**changes))


def test_an_encoder_says_why_it_cannot_chunk() -> None:
    chunked = SchedulerConfig(chunked_prefill=True)
    with pytest.raises(
        ConfigurationError, match=r"tiny-bert is an encoder: .*Turn chunked_prefill"
    ):
        Engine(EngineConfig(model=path_of("tiny-bert"), scheduler=chunked))


def test_no_compiler_is_an_error_and_never_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        CompilerUnavailableError,
        match=r"mode='compiled' needs a C\+\+ compiler; looked for \['.+'\] on PATH .*mode='eager'",
    ):
        Engine(decoder(execution=ExecutionConfig(mode="compiled")))
    with Engine(decoder(execution=ExecutionConfig(mode="eager"))) as engine:
        assert engine.supported_tasks, "eager needs no compiler"


def test_a_configuration_survives_json() -> None:
    config = decoder(
        execution=ExecutionConfig(mode="graph", graph_buckets=(8, 64)), plugins=("a:b",)
    )
    assert config_from_json(json.loads(json.dumps(config_to_json(config)))) == config


def test_an_unknown_option_is_told_the_known_ones() -> None:
    data = config_to_json(decoder())
    data["scheduler"]["chunk_size"] = 4
    with pytest.raises(
        ConfigurationError,
        match=r"SchedulerConfig has no option \['chunk_size'\]; valid options: \['async",
    ):
        config_from_json(data)
