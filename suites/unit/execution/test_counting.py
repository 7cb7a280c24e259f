"""Compiled calls are counted by us alone: torch's own count is one number for all threads.

Passes wrongly if this torch never counts. Ruled out by `test_torch_would_raise`, where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo import eval_frame

from engine.execution.compiled import Compiler

COUNT = "set_fullgraph_compiled_frame_count"
"""Sets torch's count and returns the one before; not every torch has it."""


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def as_it_is(graph: torch.fx.GraphModule, _inputs: Any, **_options: Any) -> Callable[..., Any]:
    return graph.forward


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    """Of one region, while another thread sets the count back just before each call's end."""
    real: Callable[[int], int] = getattr(eval_frame, COUNT, lambda _: 0)

    def set_back(count: int) -> int:
        before = real(count)
        return 0 if count < 0 else before

    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", as_it_is)
    monkeypatch.setattr("engine.execution.compiled.REGIONS", {"one": double})
    made = Compiler()
    monkeypatch.setattr(eval_frame, COUNT, set_back, raising=False)
    yield made
    real(0)


def test_a_call_that_begins_on_another_thread_disturbs_none(compiler: Compiler) -> None:
    for number in range(3):
        out, calls = compiler("one", torch.full((2, 3), float(number)))
        assert calls == 1
        assert out.tolist() == [[2.0 * number] * 3] * 2


@pytest.mark.skipif(not hasattr(eval_frame, COUNT), reason="this torch counts no compiled frames")
def test_torch_would_raise(compiler: Compiler) -> None:
    getattr(eval_frame, COUNT)(-1)
    with pytest.raises(RuntimeError, match="no compiled frames"):
        compiler("one", torch.ones(2, 3))
