"""Checkpoints with heads, made from the generated ones by the libraries that define the heads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file

from engine.config import EngineConfig, ExecutionConfig, ParallelConfig, SchedulerConfig
from engine.engine import Engine, RunResult
from engine.request import PoolingRequest
from harness.checkpoints.catalogue import path_of
from harness.oracle.precision import replace_norms

HEAD_SPREAD = 0.125
"""Standard deviation of a head's drawn weights: logits of about 1, whose softmax still moves."""


def hugging_face(name: str, architecture: str, folder: Path, **config: Any) -> Any:
    """Save `name`'s backbone under a head of `architecture`; the model in float64 is the truth."""
    transformers.utils.logging.set_verbosity_error()  # it warns that the head is new, as it is
    transformers.utils.logging.disable_progress_bar()
    model: Any = getattr(transformers, architecture).from_pretrained(path_of(name), **config)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if not parameter_name.startswith(f"{model.base_model_prefix}."):
                drawn = torch.randn(parameter.shape, generator=generator) * HEAD_SPREAD
                parameter.copy_(drawn + float("orm." in parameter_name))
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(path_of(name) / file, folder / file)
    exact = model.double().eval()
    replace_norms(exact)
    return exact


def copied(name: str, folder: Path, *, keep_modules: bool = True) -> Path:
    """A copy of a generated checkpoint to add files to."""
    shutil.copytree(path_of(name), folder, dirs_exist_ok=True)
    if not keep_modules:
        for file in ("modules.json", "1_Pooling/config.json"):
            (folder / file).unlink(missing_ok=True)
    return folder


def linear(
    folder: Path, file: str, outputs: int, inputs: int, *, bias: bool = True
) -> torch.nn.Linear:
    """A drawn projection saved as `weight` and `bias`; returned in float64."""
    generator = torch.Generator().manual_seed(outputs)
    layer = torch.nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(outputs, inputs, generator=generator) / inputs**0.5)
        if bias:
            layer.bias.copy_(torch.randn(outputs, generator=generator) / 10)
    save_file({n: p.detach().clone() for n, p in layer.named_parameters()}, folder / file)
    return layer.double().requires_grad_(requires_grad=False)


def write_pooler(folder: Path, **content: object) -> None:
    """`pooler.json`."""
    (folder / "pooler.json").write_text(json.dumps(content))


def config_of(
    folder: Path,
    *,
    chunk: int | None = None,
    stages: int = 1,
    overlaps: bool = False,
    dtype: str = "float32",
    stream: Any = None,
) -> EngineConfig:
    """One engine's configuration: whole or in chunks, sync or async, one stage or more."""
    more: Mapping[str, Any] = {} if stream is None else {"stream": stream}
    return EngineConfig(
        model=folder,
        max_model_len=256,
        scheduler=SchedulerConfig(
            max_num_batched_tokens=chunk or 4096,
            max_num_seqs=8,
            chunked_prefill=chunk is not None,
            async_scheduling=overlaps,
        ),
        execution=ExecutionConfig(dtype=dtype),
        parallel=ParallelConfig(pipeline_parallel_size=stages),
        **more,
    )


def run(config: EngineConfig, requests: Sequence[PoolingRequest]) -> RunResult:
    """Every request answered by one engine of its own; none refused."""
    with Engine(config) as engine:
        result = engine.run(requests)
    assert not result.refused, result.refused
    return result


def relative_l2(found: torch.Tensor, truth: torch.Tensor) -> float:
    """Distance in the Euclidean norm, of float64 values, by the truth's norm; shapes must agree."""
    assert found.shape == truth.shape, (found.shape, truth.shape)
    return float((found.double() - truth).norm() / truth.norm())
