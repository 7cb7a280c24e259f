"""What this model can do under this configuration; everything else is refused at start-up."""

from __future__ import annotations

from dataclasses import replace

from engine.config import EngineConfig
from engine.errors import ConfigurationError
from engine.execution.buckets import default_buckets, reachable
from engine.execution.compiled import require_compiler
from engine.layers.linear import MIN_ROWS
from engine.memory import RunnerLimits
from engine.models.config import ModelConfig
from engine.models.loader import check_arithmetic
from engine.models.registry import model_class
from engine.models.split import check_divisible


def resolve(config: EngineConfig, model: ModelConfig) -> EngineConfig:
    """Fill in every `None` that depends on the model and refuse what cannot be run.

    Raises:
        ConfigurationError: more stages than layers, tensor ranks that do not divide a layer, a
            bidirectional model asked to chunk, a budget that cannot hold a prompt, a missing
            compiler, a length the model has no positions for, arithmetic that this machine lacks.
    """
    execution, stages = config.execution, config.parallel.pipeline_parallel_size
    check_arithmetic(
        dtype=execution.dtype,
        attention=execution.attention,
        kernels=execution.kernels,
        batch_invariant=execution.batch_invariant,
        device=config.device,
    )
    if stages > model.num_layers:
        raise ConfigurationError(
            f"pipeline_parallel_size={stages} is more than the {model.num_layers} layers of "
            f"{config.model.name}; choose 1 to {model.num_layers}"
        )
    check_divisible(
        model, model_class(model.architecture).block_class, config.parallel.tensor_parallel_size
    )
    scheduler = config.scheduler
    if not model.causal and scheduler.chunked_prefill:
        what = "an encoder" if model.family == "encoder" else "a bidirectional decoder"
        raise ConfigurationError(
            f"{config.model.name} is {what}: every token attends to tokens after it, so a prompt "
            "cannot be split over steps. Turn chunked_prefill off"
        )
    if not model.causal and config.cache.prefix_cache:
        raise ConfigurationError(
            f"{config.model.name} is an encoder and keeps no keys and values: it has nothing to "
            "cache. Turn prefix_cache off"
        )
    chunked = model.causal if scheduler.chunked_prefill is None else scheduler.chunked_prefill
    length = config.max_model_len or model.max_positions
    if length > model.max_positions:
        raise ConfigurationError(
            f"max_model_len={length} is more than the {model.max_positions} positions of "
            f"{config.model.name}"
        )
    if not chunked and scheduler.max_num_batched_tokens < length:
        raise ConfigurationError(
            f"max_num_batched_tokens={scheduler.max_num_batched_tokens} cannot hold a prompt of "
            f"max_model_len={length} in one step. Raise the budget, lower max_model_len or turn "
            "chunked_prefill on"
        )
    if config.execution.mode != "eager":
        require_compiler(config.device)
    resolved = replace(
        config,
        scheduler=replace(scheduler, chunked_prefill=chunked),
        max_model_len=length,
    )
    return _with_buckets(resolved) if config.execution.mode == "graph" else resolved


def _with_buckets(config: EngineConfig) -> EngineConfig:
    """Name the buckets that this configuration's steps may need."""
    if config.parallel.tensor_parallel_size > 1:
        raise ConfigurationError(
            f"mode='graph' with tensor_parallel_size={config.parallel.tensor_parallel_size}: sums "
            "over tensor ranks are not recorded. Use mode='compiled', or tensor_parallel_size=1"
        )
    execution, most = config.execution, _most_rows(config)
    buckets = execution.graph_buckets
    kept = default_buckets(most) if buckets is None else reachable(buckets, most)
    return replace(config, execution=replace(execution, graph_buckets=kept))


def _most_rows(config: EngineConfig) -> int:
    """Of a step, before it is padded to a bucket."""
    assert config.max_model_len is not None, "resolve the configuration first"
    scheduler = config.scheduler
    tokens = min(scheduler.max_num_batched_tokens, scheduler.max_num_seqs * config.max_model_len)
    return max(tokens, MIN_ROWS)


def limits_of(config: EngineConfig, model: ModelConfig) -> RunnerLimits:
    """Buffer sizes for a resolved configuration."""
    assert config.max_model_len is not None, "resolve the configuration first"
    scheduler, length = config.scheduler, config.max_model_len
    # Finished requests keep their state until their result is taken: up to one step's worth for
    # every step in flight, beside those still running.
    slots = scheduler.max_num_seqs * (config.max_steps_in_flight + 1)
    per_prompt = -(-length // config.cache.block_size)
    num_blocks = config.cache.num_blocks or slots * per_prompt
    buckets = config.execution.graph_buckets
    return RunnerLimits(
        max_tokens=_most_rows(config) if buckets is None else buckets[-1],
        max_seqs=scheduler.max_num_seqs,
        max_model_len=length,
        max_slots=slots,
        num_blocks=num_blocks if model.causal else 0,
    )
