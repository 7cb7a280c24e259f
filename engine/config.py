"""Engine configuration: frozen, composed, validated where a value is wrong on its own.

What depends on the model (chunking an encoder, more stages than layers) is checked at start-up
by `engine.capabilities`, which knows both sides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.errors import ConfigurationError

EXECUTION_MODES = ("eager", "compiled", "graph")
ATTENTION_BACKENDS = ("sdpa", "naive", "triton")
KERNELS = ("torch", "triton")
DTYPES = ("float32", "float64", "bfloat16", "float16")
INPUT_BUFFERS = ("fenced", "ring")
EXECUTORS = ("inline", "processes", "torchrun")
POOLING_METHODS = ("CLS", "LAST", "MEAN", "MAX", "MEAN_SQRT", "WEIGHTED_MEAN")
CHECK_LEDGERS = "PARITY_CHECK_LEDGERS"
"""Environment variable: 1 turns `EngineConfig.check_ledgers` on where it is not said. It reaches
processes that are started deep inside; the project's tests set it."""
STREAM_POLICIES = ("threaded", "immediate", "lag", "paced", "drawn")


def _require(ok: bool, what: str, got: object, expected: object, remedy: str) -> None:  # noqa: FBT001
    if not ok:
        raise ConfigurationError(f"{what}={got!r} is not valid: expected {expected}. {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """How requests become steps."""

    max_num_batched_tokens: int = 8192
    """Token budget of one step; with `chunked_prefill` also the largest chunk."""
    max_num_seqs: int = 8
    chunked_prefill: bool | None = None
    """May a prompt be split over steps? None: whatever the model allows (encoders: no)."""
    long_prefill_token_threshold: int = 0
    """Most tokens that one prompt takes of a step while others stand in line; 0: no limit."""
    async_scheduling: bool = False

    def __post_init__(self) -> None:
        _require(
            self.long_prefill_token_threshold >= 0,
            "long_prefill_token_threshold",
            self.long_prefill_token_threshold,
            "0 (no limit) or a number of tokens",
            "",
        )
        _require(
            not (self.long_prefill_token_threshold and self.chunked_prefill is False),
            "long_prefill_token_threshold",
            self.long_prefill_token_threshold,
            "0 when chunked_prefill is off",
            "A prompt that must run whole cannot be held to a part of a step.",
        )
        _require(
            self.max_num_batched_tokens >= 1,
            "max_num_batched_tokens",
            self.max_num_batched_tokens,
            "a chunk budget of at least 1 token",
            "Give a positive token budget.",
        )
        _require(self.max_num_seqs >= 1, "max_num_seqs", self.max_num_seqs, "at least 1", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """Paged KV. `num_blocks` None: enough for all that `max_num_seqs` lets run; with fewer,
    prompts wait, and running ones are preempted and computed again."""

    block_size: int = 16
    num_blocks: int | None = None
    prefix_cache: bool = False
    """Keep full blocks for prompts that begin alike. Only LAST-pooled answers read them: the
    others need the row of every token, cached ones have none."""

    def __post_init__(self) -> None:
        _require(self.block_size >= 1, "block_size", self.block_size, "at least 1 token", "")
        _require(
            self.num_blocks is None or self.num_blocks >= 1,
            "num_blocks",
            self.num_blocks,
            "None or at least 1",
            "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPolicy:
    """When a host stream runs what was submitted to it. Written `name` or `name(argument)`.

    threaded; immediate; lag(compute@first|compute@last|copy@last); paced(units per submit);
    drawn(choice,choice,...).
    """

    kind: str = "threaded"
    stream: str = ""
    units: int = 1
    choices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require(
            self.kind in STREAM_POLICIES,
            "stream policy",
            self.kind,
            f"one of {STREAM_POLICIES}",
            "",
        )
        _require(
            self.kind != "lag"
            or bool(re.fullmatch(r"(compute|copy)@(first|last|\d+)", self.stream)),
            "lagging stream",
            self.stream,
            "compute@RANK or copy@RANK, RANK a number, 'first' or 'last'",
            "",
        )
        _require(self.units >= 1, "units", self.units, "at least 1", "")

    @classmethod
    def parse(cls, text: str) -> StreamPolicy:
        """`lag(copy@last)`, `paced(2)`, `drawn(0,3,1)`, `threaded`, `immediate`."""
        match = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?", text.strip())
        if match is None:
            raise ConfigurationError(f"stream policy {text!r} is not NAME or NAME(ARGUMENT)")
        kind, argument = match.group(1), match.group(2) or ""
        if kind == "lag":
            return cls(kind=kind, stream=argument)
        if kind == "paced":
            return cls(kind=kind, units=int(argument or 1))
        if kind == "drawn":
            return cls(kind=kind, choices=tuple(int(c) for c in argument.split(",") if c))
        return cls(kind=kind)

    def __str__(self) -> str:
        argument = {
            "lag": self.stream,
            "paced": str(self.units),
            "drawn": ",".join(map(str, self.choices)),
        }.get(self.kind)
        return self.kind if argument is None else f"{self.kind}({argument})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionConfig:
    """How a step's arithmetic is carried out."""

    mode: str = "eager"
    attention: str = "sdpa"
    kernels: str = "torch"
    """Who computes products, norms, rotary angles and tile sums."""
    dtype: str = "float32"
    batch_invariant: bool = False
    """Fix every reduction order, so chunk size and batch company change no bit."""
    graph_buckets: tuple[int, ...] | None = None
    """With `graph`: the row counts that are recorded, ascending; every step is padded to one. Those
    beyond what a step can need are not recorded. None: 8, 16, 32, then four to each doubling."""
    num_threads: int = 1
    """Intra-op threads of every rank; attested, since results may depend on it."""

    def __post_init__(self) -> None:
        _require(self.mode in EXECUTION_MODES, "mode", self.mode, f"one of {EXECUTION_MODES}", "")
        _require(
            self.attention in ATTENTION_BACKENDS,
            "attention",
            self.attention,
            f"one of {ATTENTION_BACKENDS}",
            "",
        )
        _require(self.kernels in KERNELS, "kernels", self.kernels, f"one of {KERNELS}", "")
        buckets = self.graph_buckets
        _require(
            buckets is None or self.mode == "graph",
            "graph_buckets",
            buckets,
            f"None with mode={self.mode!r}",
            "Choose mode='graph', or leave them out.",
        )
        _require(
            buckets is None
            or (len(buckets) > 0 and buckets[0] >= 2 and tuple(sorted(set(buckets))) == buckets),
            "graph_buckets",
            buckets,
            "ascending row counts of at least 2",
            "A single row takes other kernels than many.",
        )
        _require(self.dtype in DTYPES, "dtype", self.dtype, f"one of {DTYPES}", "")
        _require(self.num_threads >= 1, "num_threads", self.num_threads, "at least 1", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelConfig:
    """Where ranks run: all in this process (`inline`), one process each (`processes`), or in the
    processes that torchrun started, of which rank 0 drives (`torchrun`)."""

    pipeline_parallel_size: int = 1
    """Stages that the layers are split over."""
    tensor_parallel_size: int = 1
    """Ranks of each stage, which share its layers' heads and feed-forward columns."""
    executor: str = "inline"
    worker_timeout_s: float = 120.0
    """Longest silence of a rank that was asked for something."""
    startup_timeout_s: float = 300.0
    """Longest time for a rank to start, load its stage and compile it."""

    def __post_init__(self) -> None:
        _require(
            self.pipeline_parallel_size >= 1,
            "pipeline_parallel_size",
            self.pipeline_parallel_size,
            "at least 1",
            "",
        )
        _require(
            self.tensor_parallel_size >= 1,
            "tensor_parallel_size",
            self.tensor_parallel_size,
            "at least 1",
            "",
        )
        _require(self.executor in EXECUTORS, "executor", self.executor, f"one of {EXECUTORS}", "")

    @property
    def num_ranks(self) -> int:
        return self.pipeline_parallel_size * self.tensor_parallel_size


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Everything that defines a run of the engine, apart from the requests."""

    model: Path
    pooling: str | None = None
    """One of POOLING_METHODS; None: what the checkpoint says, else LAST for decoders."""
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    execution: ExecutionConfig = field(default_factory=ExecutionConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    stream: StreamPolicy = field(default_factory=StreamPolicy)
    inputs: str = "fenced"
    """`fenced`: one staging buffer, wait on reuse. `ring`: one per step in flight."""
    poison: bool = False
    """Debug: fill what is released with NaN, in stream order. May change no output."""
    check_ledgers: bool = field(
        default_factory=lambda: os.environ.get(CHECK_LEDGERS, "0") not in ("", "0")
    )
    """Debug: after every step, see that slots, KV blocks and retained rows are accounted for; else
    LedgerError. May change no output."""
    max_model_len: int | None = None
    device: str = "cpu"
    plugins: tuple[str, ...] = ()
    """`module:callable`s that every worker applies to its runner at start-up."""

    def __post_init__(self) -> None:
        _require(
            self.pooling is None or self.pooling in POOLING_METHODS,
            "pooling",
            self.pooling,
            f"None or one of {POOLING_METHODS}",
            "",
        )
        _require(self.inputs in INPUT_BUFFERS, "inputs", self.inputs, f"one of {INPUT_BUFFERS}", "")

    @property
    def max_steps_in_flight(self) -> int:
        """One per stage, and one more under async scheduling."""
        return self.parallel.pipeline_parallel_size + int(self.scheduler.async_scheduling)

    @property
    def overlaps_steps(self) -> bool:
        """Whether a step may be submitted before the one before it has been fetched."""
        return self.max_steps_in_flight > 1


def config_to_json(config: EngineConfig) -> dict[str, Any]:
    """Plain data for a worker's command line or a record."""
    data = asdict(config)
    data["model"] = str(config.model)
    data["stream"] = str(config.stream)
    return data


def config_from_json(data: Mapping[str, Any]) -> EngineConfig:
    """Inverse of `config_to_json`; unknown keys are an error naming the valid ones."""
    parts = {
        "scheduler": SchedulerConfig,
        "cache": CacheConfig,
        "execution": ExecutionConfig,
        "parallel": ParallelConfig,
    }
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key in parts:
            values[key] = _part(parts[key], value)
        elif key == "stream":
            values[key] = StreamPolicy.parse(value)
        elif key == "model":
            values[key] = Path(value)
        else:
            values[key] = value
    config: EngineConfig = _part(EngineConfig, values)
    return config


def _part(cls: type[Any], data: Mapping[str, Any]) -> Any:
    known = sorted(f.name for f in fields(cls))
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise ConfigurationError(f"{cls.__name__} has no option {unknown}; valid options: {known}")
    # JSON has no tuples, a configuration nothing else.
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()})
