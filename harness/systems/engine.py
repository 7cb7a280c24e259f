"""Our own engine as a system under test: cells and settings become an EngineConfig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from engine.capabilities import resolve
from engine.config import (
    CacheConfig,
    EngineConfig,
    ExecutionConfig,
    ParallelConfig,
    SchedulerConfig,
    StreamPolicy,
    config_to_json,
)
from engine.engine import Engine
from engine.errors import CompilerUnavailableError, ConfigurationError
from engine.models.config import read_model_config
from engine.plan import plan_from_json, plan_to_json
from engine.request import PoolingParams, PoolingRequest, Task
from engine.resources import ResourceKey, Resources
from engine.tokenization import Tokenizer
from harness.axes import Plan, num_ranks
from harness.axes.graph import coarse_buckets, fitted_buckets
from harness.axes.memory import small_pool
from harness.case import Case, Prompt
from harness.judge.output import Output
from harness.record import Json
from harness.systems.base import (
    Assignment,
    Encoded,
    Refused,
    SystemFailed,
    SystemRun,
    SystemUnavailable,
    TapRows,
)
from harness.systems.lagging import LAGS
from harness.systems.served import ServedSession, missing

_TASKS = {
    "embed": Task.EMBED,
    "token_embed": Task.TOKEN_EMBED,
    "classify": Task.CLASSIFY,
    "score": Task.CLASSIFY,
    "token_classify": Task.TOKEN_CLASSIFY,
}
_BUCKETS = {"fitted": fitted_buckets, "coarse": coarse_buckets}
"""`graph` value -> the buckets for steps of at most so many rows."""
DEVICES = ("cpu", "cuda")
CUDA_SETTINGS: tuple[Mapping[str, str], ...] = (
    {"stream_policy": "threaded", "inputs": "fenced", "lag": "copy"},
    {"stream_policy": "threaded", "inputs": "ring", "lag": "compute"},
    {"stream_policy": "threaded", "inputs": "fenced", "lag": "compute"},
    {"stream_policy": "threaded", "inputs": "ring", "lag": "copy"},
)
"""In place of a profile's own: a policy cannot steer a CUDA device, but it can be made to lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What every cell of a campaign shares."""

    model: Path
    chunk: int
    """Token budget of a step in a chunked cell."""
    max_num_seqs: int
    max_model_len: int
    block_size: int = 16
    batch_invariant: bool = False
    dtype: str = "float32"
    device: str = "cpu"
    long_prefill_token_threshold: int = 0
    """In chunked cells: lets several prompts be underway, so that a small pool must preempt."""
    num_threads: int = 1
    worker_timeout_s: float = 120.0
    settings: tuple[Mapping[str, str], ...] = (
        {"stream_policy": "lag(copy@last)", "inputs": "fenced"},
    )
    """Stream policies and buffers that a campaign rotates over its cases."""


def engine(assignment: Assignment) -> EngineSystem:
    """Factory. One option, `device`: what a cell does not say stands in the configuration."""
    device = _device(assignment)
    options = EngineOptions(
        model=assignment.folder,
        chunk=assignment.chunk,
        max_num_seqs=assignment.max_num_seqs,
        max_model_len=assignment.max_model_len,
        block_size=assignment.block_size,
        long_prefill_token_threshold=assignment.long_prefill_token_threshold,
        batch_invariant=assignment.batch_invariant,
        dtype=assignment.dtype,
        device=device,
        worker_timeout_s=assignment.timeout_s,
    )
    if device == "cuda":
        options = replace(options, settings=CUDA_SETTINGS)
    elif assignment.settings:
        options = replace(options, settings=assignment.settings)
    return EngineSystem(options, assignment)


def _device(assignment: Assignment) -> str:
    """The option `device`; SystemUnavailable for another option, or a device that is not here."""
    others = sorted({*assignment.options} - {"device"})
    device = str(assignment.options.get("device", "cpu"))
    if others or device not in DEVICES:
        raise SystemUnavailable(
            f"engine has the option device={'|'.join(DEVICES)} and no other, got "
            + ", ".join(f"{name}={value}" for name, value in assignment.options.items())
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemUnavailable(
            f"device=cuda: torch {torch.__version__} finds no usable CUDA device. Leave the option "
            "out to run on the CPU"
        )
    return device


class EngineSession:
    """One warm engine."""

    def __init__(self, engine: Engine, *, small_pool: bool = False) -> None:
        self.engine, self._small_pool = engine, small_pool

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        params = PoolingParams(
            normalize=case.normalize, activation=case.activation, dimensions=case.dimensions
        )
        requests = [
            PoolingRequest(
                request_id=str(index),
                token_ids=prompt.token_ids,
                type_ids=prompt.type_ids,
                task=_TASKS[case.task],
                params=params,
            )
            for index, prompt in enumerate(prompts)
        ]
        replayed = None if plan is None else plan_from_json(plan)
        size = self.engine.config.cache.block_size
        lengths = [request.num_tokens for request in requests]
        result = self.engine.run(
            requests,
            plan=replayed,
            arrivals=case.arrivals,
            taps=taps,
            num_blocks=small_pool(lengths, size) if self._small_pool else None,
        )
        if result.refused:
            raise ConfigurationError("; ".join(result.refused.values()))
        if result.failed:
            raise SystemFailed("; ".join(result.failed.values()))
        return SystemRun(
            outputs=tuple(_output(result.outputs[str(i)].values) for i in range(len(prompts))),
            plan=plan_to_json(result.plan),
            witness=result.witness.to_json(),
            taps=tuple(
                TapRows(
                    prompt=int(tap.request_id),
                    layer=tap.layer,
                    step=tap.step,
                    start=tap.start,
                    rows=np.asarray(tap.rows.float()),
                )
                for tap in result.taps
            ),
        )


class EngineSystem:
    """Owns: warm engines by (cell, settings) and the resources they share in this process."""

    def __init__(self, options: EngineOptions, assignment: Assignment | None = None) -> None:
        """`assignment`: what the options were made of; without it there is no server to ask."""
        self._options, self._assignment = options, assignment
        self._model = read_model_config(options.model)
        self._tokenizer: Tokenizer | None = None
        self._resources: dict[ResourceKey, Resources] = {}
        self._sessions: dict[tuple[tuple[str, str], ...], EngineSession] = {}
        self._plants: list[str] = []

    @property
    def dtype(self) -> str:
        return self._options.dtype

    @property
    def refused_token(self) -> int | None:
        """A token id that the model takes in no prompt; None: it takes all."""
        return self._model.padding_id

    @property
    def is_causal(self) -> bool:
        return self._model.causal

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(_TASKS)

    @property
    def settings(self) -> tuple[Mapping[str, str], ...]:
        return self._options.settings

    @property
    def costly(self) -> bool:
        return False

    def about(self) -> Mapping[str, str]:
        return {"engine": "pooling-parity"}

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        return tuple(self._encode(prompt, case.task) for prompt in case.prompts)

    def _encode(self, prompt: Prompt, task: str) -> Encoded:
        if prompt.tokens is not None:
            return Encoded(token_ids=prompt.tokens)
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._options.model)
        if prompt.text is not None:
            found = self._tokenizer.encode(prompt.text)
        else:
            assert prompt.query is not None, prompt
            assert prompt.document is not None, prompt
            encode = (
                self._tokenizer.encode_rerank
                if task == "score" and self.is_causal
                else self._tokenizer.encode_pair
            )
            found = encode(prompt.query, prompt.document)
        types = tuple(found.type_ids) if any(found.type_ids) else ()
        return Encoded(token_ids=tuple(found.token_ids), type_ids=types)

    def spell(self, prompts: Sequence[Encoded]) -> tuple[tuple[str, ...], ...]:
        """Per prompt, the text of each token."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._options.model)
        return tuple(self._tokenizer.pieces(prompt.token_ids) for prompt in prompts)

    def config(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> EngineConfig:
        """The engine configuration of a cell."""
        options = self._options
        chunked = cell["chunk"] == "chunked"
        whole_budget = max(options.max_model_len * options.max_num_seqs, options.chunk)
        budget, graph = options.chunk if chunked else whole_budget, cell.get("graph", "off")
        cuda = options.device == "cuda"
        lag = [LAGS[settings["lag"]]] if cuda and "lag" in settings else []
        return EngineConfig(
            model=options.model,
            device=options.device,
            max_model_len=options.max_model_len,
            scheduler=SchedulerConfig(
                max_num_batched_tokens=budget,
                max_num_seqs=options.max_num_seqs,
                chunked_prefill=chunked,
                long_prefill_token_threshold=(
                    options.long_prefill_token_threshold if chunked else 0
                ),
                async_scheduling=cell["async"] == "async",
            ),
            cache=CacheConfig(
                block_size=int(cell.get("block_size", options.block_size)),
                prefix_cache=cell.get("prefix_cache") == "on",
            ),
            execution=ExecutionConfig(
                mode=cell["compile"] if graph == "off" else "graph",
                # Others read sizes back from a GPU, and while they do no step overlaps another.
                attention=cell.get("attention", "triton" if cuda else "sdpa"),
                kernels="triton" if cuda and options.batch_invariant else "torch",
                graph_buckets=None if graph == "off" else _BUCKETS[graph](budget),
                dtype=options.dtype,
                batch_invariant=options.batch_invariant,
                num_threads=options.num_threads,
            ),
            parallel=ParallelConfig(
                pipeline_parallel_size=int(cell["pp"]),
                tensor_parallel_size=int(cell.get("tp", "1")),
                executor=settings.get("executor", "inline") if num_ranks(cell) > 1 else "inline",
                worker_timeout_s=options.worker_timeout_s,
            ),
            stream=StreamPolicy.parse(settings.get("stream_policy", "threaded")),
            inputs=cell.get("buffers", settings.get("inputs", "fenced")),
            plugins=(*lag, *self._plants),
        )

    def configuration(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Json:
        """The engine configuration of a cell as plain data, for a stand-alone script."""
        return config_to_json(self.config(cell, settings))

    def refusal(self, cell: Mapping[str, str]) -> str | None:
        """Why the engine would not start in a cell: told by its own check, before it loads."""
        reason = _impossible(cell, causal=self.is_causal)
        if reason is not None:
            return reason
        try:
            resolve(self.config(cell, {}), self._model)
        except CompilerUnavailableError:
            return None  # the machine lacks something: an error to be seen, not a cell it may skip
        except ConfigurationError as error:
            return str(error)
        return None

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> EngineSession:
        key = _key(cell, settings)
        if key not in self._sessions:
            reason = self.refusal(cell)
            if reason is not None:
                raise Refused(reason)
            config = self.config(cell, settings)
            try:
                self._sessions[key] = EngineSession(
                    Engine(config, resources=self._shared(config)),
                    small_pool=cell.get("kv_pool") == "small",
                )
            except CompilerUnavailableError:
                raise  # the machine lacks something: an error to be seen, not a cell it may skip
            except ConfigurationError as error:
                raise Refused(str(error)) from error
        return self._sessions[key]

    @property
    def unserved(self) -> str:
        if self._assignment is None:
            return "the system was given no checkpoint that a server could name"
        return missing()

    def serve(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> ServedSession:
        reason = self.refusal(cell)
        if reason is not None:
            raise Refused(reason)
        assert self._assignment is not None, "unserved said so"
        config = self.config(cell, settings)
        return ServedSession(
            config,
            self._shared(config),
            self._assignment,
            small_pool=cell.get("kv_pool") == "small",
        )

    def _shared(self, config: EngineConfig) -> Resources | None:
        """What the engines of this process share; ranks that are processes load their own."""
        if config.parallel.executor != "inline":
            return None
        key = ResourceKey.of(config)
        if key not in self._resources:
            self._resources[key] = Resources(config)
        return self._resources[key]

    def discard(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> None:
        session = self._sessions.pop(_key(cell, settings), None)
        if session is not None:
            session.engine.close()

    def plant(self, name: str) -> None:
        for session in self._sessions.values():
            session.engine.apply_plugin(name)
        self._plants.append(name)

    def unplant(self, name: str) -> None:
        self._plants.remove(name)
        for session in self._sessions.values():
            session.engine.remove_plugin(name)

    def release(self) -> None:
        """Close every instance; what they share stays loaded."""
        for session in self._sessions.values():
            session.engine.close()
        self._sessions = {}

    def close(self) -> None:
        self.release()
        self._resources = {}


def _output(values: torch.Tensor) -> Output:
    if values.dtype is torch.bfloat16:  # numpy has none: its bits
        return Output.of(values.view(torch.uint16).numpy(), "bfloat16")
    return Output.of(values.numpy())


def _key(cell: Mapping[str, str], settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({**cell, **settings}.items()))


def _impossible(cell: Mapping[str, str], *, causal: bool) -> str | None:
    """What a model has no memory for, what two axes lay out at once, what has nothing to replay."""
    if "graph" in cell and cell["compile"] == "eager":
        return (
            f"graph={cell['graph']} replays compiled callables, and compile=eager has none; vary "
            "compile beside it"
        )
    paged = [name for name in ("prefix_cache", "kv_pool", "block_size") if name in cell]
    if paged and not causal:
        return f"an encoder keeps no keys and values, so {paged[0]} cannot be varied"
    if "block_size" in paged and len(paged) > 1:
        return (
            "block_size is held to one plan, and what a small pool or a prefix cache does depends "
            "on the block size; vary it on its own"
        )
    return None
