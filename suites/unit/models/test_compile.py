"""A block under torch.compile: one graph for all layers and all sizes of batch.

Passes wrongly if the backend could not count to two. Ruled out by
`test_equal_sizes_must_not_be_taken_for_one`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from engine.models import load_model
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.generate import GENERATORS
from suites.unit.models.packed import PackedRun, prompt

SHAPES = (
    {"prompts": [prompt(5), prompt(9), prompt(30)], "chunk": None, "spare_columns": 1},
    {"prompts": [prompt(40), prompt(2)], "chunk": 7, "spare_columns": 3},
    {"prompts": [prompt(n) for n in (3, 1, 8, 64, 2)], "chunk": None, "spare_columns": 0},
)


class CountingBackend:
    """Runs graphs as they were captured. Owns: how many it was given, and how often they ran."""

    def __init__(self) -> None:
        self.graphs = 0
        self.calls = 0

    def __call__(self, graph: torch.fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs += 1

        def run(*inputs: Any) -> Any:
            self.calls += 1
            return graph(*inputs)

        return run


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    """No graphs of other tests; and sizes that happen to be equal are not taken to be the same."""
    torch._dynamo.reset()
    with torch.fx.experimental._config.patch(use_duck_shape=False):
        yield
    torch._dynamo.reset()


def compiled(backend: CountingBackend | str) -> Callable[..., torch.Tensor]:
    def call(block: torch.nn.Module, *tensors: Any) -> torch.Tensor:
        out: torch.Tensor = block(*tensors)
        return out

    return torch.compile(call, fullgraph=True, dynamic=True, backend=backend)


@pytest.mark.parametrize("name", GENERATORS)
def test_one_graph_serves_all_layers_and_batch_shapes(name: str) -> None:
    model, backend = load_model(path_of(name)), CountingBackend()
    call = compiled(backend)
    for shape in SHAPES:
        shape = shape | ({"chunk": None} if not model.config.causal else {})
        PackedRun(model=model, call=call, **shape).hidden()
    assert backend.graphs == 1
    assert backend.calls >= len(SHAPES) * len(model.blocks)


@pytest.mark.parametrize("duck", [True, False])
def test_equal_sizes_must_not_be_taken_for_one(*, duck: bool) -> None:
    """Why `use_duck_shape` is off: 3 sequences of 3 blocks would make a graph of their own."""
    model, backend = load_model(path_of("tiny-qwen3")), CountingBackend()
    call = compiled(backend)
    with torch.fx.experimental._config.patch(use_duck_shape=duck):
        for count in (3, 4):
            PackedRun(model=model, prompts=[prompt(40)] * count, call=call).hidden()
    assert backend.graphs == (2 if duck else 1)


def test_a_single_sequence_makes_a_graph_of_its_own() -> None:
    """Sizes of 1 are specialised whatever one asks, so a runner pads the number of sequences."""
    model, backend = load_model(path_of("tiny-qwen3")), CountingBackend()
    call = compiled(backend)
    for count in (2, 1):
        PackedRun(model=model, prompts=[prompt(40)] * count, call=call).hidden()
    assert backend.graphs == 2


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-bert"])
def test_inductor_computes_what_eager_does(name: str) -> None:
    model = load_model(path_of(name))
    prompts = [prompt(n) for n in (5, 40, 2)]
    chunk = 7 if model.config.causal else None
    eager = PackedRun(model=model, prompts=prompts, chunk=chunk).hidden()
    run = PackedRun(model=model, prompts=prompts, chunk=chunk, call=compiled("inductor"))
    for a, b in zip(eager, run.hidden(), strict=True):
        # Fused arithmetic rounds elsewhere; float32's unit roundoff is 6e-8, over 4 layers.
        assert float((a - b).double().norm() / a.double().norm()) < 2e-6
