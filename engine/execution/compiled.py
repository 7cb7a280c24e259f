"""Compiled: one region a block, compiled once, shared by all layers, never silently eager."""

from __future__ import annotations

import shutil
import threading
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from engine.errors import CompilerUnavailableError
from engine.execution.base import PHASES

if TYPE_CHECKING:
    from engine.execution.base import Frame, Submit
    from engine.models.base import AttentionMetadata, Block, LayerCache
    from engine.stage import Stage

UNBOUNDED = 2**31 - 1
"""A window of this many tokens is none. Handed in instead of 0, which the compiler would take for a
constant: layers with a window and layers without would need a graph each."""
COMPILED_COST = len(PHASES)
"""A region stands for as many kernels as the stages it replaces, so a paced device lags."""


def _run_block(
    block: Block,
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    cache_keys: torch.Tensor,
    cache_values: torch.Tensor,
    row_offsets: torch.Tensor,
    context_starts: torch.Tensor,
    block_tables: torch.Tensor,
    slot_mapping: torch.Tensor,
    block_size: int,
    window: int,
) -> torch.Tensor:
    out: torch.Tensor = block(
        x,
        cos,
        sin,
        cache_keys,
        cache_values,
        row_offsets,
        context_starts,
        block_tables,
        slot_mapping,
        block_size,
        window,
    )
    return out


class Compiler:
    """Owns: this process's one compiled callable for one kind of block, and its counters.

    The counters are incremented inside the artefact the compiler returned, so a call that never
    reached compiled code is not counted. `fullgraph` makes a graph break or an exhausted
    recompile limit raise instead of running eagerly.
    """

    def __init__(self) -> None:
        self.graphs = 0
        self._calls = threading.local()
        # dynamo caches by code object: a copy of its own keeps one compiler's graphs from
        # counting against another's recompile limit.
        code = _run_block.__code__.replace(co_name=f"block_{id(self):x}")
        function = types.FunctionType(code, globals())
        self._compiled = torch.compile(
            function, fullgraph=True, dynamic=True, backend=self._backend
        )

    def __call__(self, *args: Any) -> tuple[torch.Tensor, int]:
        """Run the block; returns its output and how often compiled code was entered (1)."""
        self._calls.count = 0
        out: torch.Tensor = self._compiled(*args)
        return out, self._calls.count

    def prime(self, stage: Stage) -> None:
        """Compile now, on sizes that no two of are equal: sizes equal here would be held equal.

        One symbolic graph then serves every step of every engine that shares this compiler.
        """
        block = stage.blocks[0]
        weight, config = next(block.parameters()), stage.config
        rows, seqs, table, block_size, blocks, window = 37, 5, 7, 13, 11, 17
        slots = blocks * block_size if config.causal else 0

        def integers(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=weight.device)

        def cache() -> torch.Tensor:
            return weight.new_zeros((slots, config.num_kv_heads, config.head_dim))

        with torch.inference_mode():
            cos, sin = stage.rotary(torch.arange(rows, device=weight.device))
            self(
                block,
                weight.new_zeros((rows, config.hidden_size)),
                cos[0],
                sin[0],
                cache(),
                cache(),
                integers(seqs + 1),
                integers(seqs),
                integers(seqs, table),
                integers(rows) - 1,
                block_size,
                window,
            )

    def _backend(
        self, graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]
    ) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx  # noqa: PLC0415 - heavy, compiled only

        artefact: Any = compile_fx(graph, list(inputs))
        self.graphs += 1

        def counted(*args: Any) -> Any:
            self._calls.count = getattr(self._calls, "count", 0) + 1
            return artefact(*args)

        return counted


def require_compiler(device: str) -> None:
    """Raise CompilerUnavailableError when no C++ (CPU) or Triton (CUDA) compiler is found."""
    if device != "cpu":
        return
    from torch._inductor import config as inductor  # noqa: PLC0415 - heavy, compiled only

    candidates = [name for name in inductor.cpp.cxx if name]
    if not any(shutil.which(str(name)) for name in candidates):
        raise CompilerUnavailableError(
            f"mode='compiled' needs a C++ compiler; looked for {[str(c) for c in candidates]} on "
            "PATH and found none. Install g++ or clang, set CXX, or use mode='eager'."
        )


class CompiledExecution:
    """Owns: the count of compiled calls made for one rank; the compiler itself is shared."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self.compiled_calls = 0
        self.eager_stages = 0

    @property
    def graphs(self) -> int:
        return self._compiler.graphs

    def submit_block(
        self, submit: Submit, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> None:
        def region() -> None:
            frame.x, calls = self._compiler(
                block,
                frame.x,
                frame.cos[block.kind.rotary],
                frame.sin[block.kind.rotary],
                *_flat(cache, frame.meta),
                block.kind.window or UNBOUNDED,
            )
            self.compiled_calls += calls
            self.eager_stages += 0 if calls else COMPILED_COST

        submit(f"layer {index} compiled block", region, cost=COMPILED_COST)


def _flat(cache: LayerCache, meta: AttentionMetadata) -> tuple[torch.Tensor | int, ...]:
    return (
        cache.keys,
        cache.values,
        meta.row_offsets,
        meta.context_starts,
        meta.block_tables,
        meta.slot_mapping,
        cache.block_size,
    )
