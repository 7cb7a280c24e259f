"""Compiled: regions of a block, compiled once, shared by all layers, never silently eager."""

from __future__ import annotations

import importlib.util
import shutil
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from engine.errors import CompilerUnavailableError
from engine.execution.base import PHASES, BlockByBlock
from engine.execution.regions import REGIONS

if TYPE_CHECKING:
    from engine.execution.base import Frame
    from engine.execution.queue import StepQueue
    from engine.models.base import AttentionMetadata, Block, LayerCache
    from engine.stage import Stage

UNBOUNDED = 2**31 - 1
"""A window of this many tokens is none. Handed in instead of 0, which the compiler would take for a
constant: layers with a window and layers without would need a graph each."""
COMPILED_COST = len(PHASES)
"""A region stands for as many kernels as the stages it replaces, so a paced device lags."""


class Compiler:
    """Owns: this process's compiled callables for one kind of block, one a region; their counters.

    The counters are incremented inside the artefact the compiler returned, so a call that never
    reached compiled code is not counted. `fullgraph` makes a graph break or an exhausted
    recompile limit raise instead of running eagerly.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        """`options` of torch's inductor that are to differ from this process's own."""
        self.graphs = 0
        self._options = dict(options or {})
        self._calls = threading.local()
        self._regions = {name: self._compile(function) for name, function in REGIONS.items()}
        self._primed: set[str] = set()
        _leave_counting_to_us()

    def __call__(self, region: str, *args: Any) -> tuple[Any, int]:
        """Run a region; returns its output and how often compiled code was entered (1)."""
        self._calls.count = 0
        out = self._regions[region](*args)
        return out, self._calls.count

    def prime(self, stage: Stage, regions: Sequence[str]) -> None:
        """Compile now, on sizes that no two of are equal: sizes equal here would be held equal.

        One symbolic graph of each region then serves every step of every engine that shares this
        compiler. Rotary tables are the first of their stack: one that begins inside its storage
        would tie the graph to that storage's size.
        """
        block = stage.blocks[0]
        like, config = next(block.products()), stage.config
        rows, seqs, table, block_size, blocks, window = 37, 5, 7, 13, 11, 17
        slots = blocks * block_size if config.causal else 0

        def integers(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=like.device)

        def cache() -> torch.Tensor:
            return like.new_zeros((slots, block.num_kv_heads, block.head_dim))

        def hidden() -> torch.Tensor:
            return like.new_zeros((rows, config.hidden_size))

        with torch.inference_mode():
            cos, sin = stage.rotary(torch.arange(rows, device=like.device))
            attention = (
                *(cos[0], sin[0], cache(), cache()),
                *(integers(seqs + 1), integers(seqs), integers(seqs, table), integers(rows) - 1),
                *(block_size, window),
            )
            attended = like.new_zeros((rows, block.num_heads * block.head_dim))
            arguments: dict[str, tuple[Any, ...]] = {
                "whole": attention,
                "attention": attention,
                "feed_forward": (hidden(),),
                "join": (hidden(),),
                "before_attention": (cos[0], sin[0]),
                "after_attention": (attended,),
            }
            for region in regions:
                if region not in self._primed:
                    self(region, block, hidden(), *arguments[region])
                    self._primed.add(region)

    def _compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # dynamo caches by code object: a copy of its own keeps one compiler's graphs from
        # counting against another's recompile limit.
        code = function.__code__.replace(co_name=f"{function.__name__}_{id(self):x}")
        own = types.FunctionType(code, function.__globals__)
        compiled: Callable[..., Any] = torch.compile(
            own, fullgraph=True, dynamic=True, backend=self._backend
        )
        return compiled

    def _backend(
        self, graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]
    ) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx  # noqa: PLC0415 - heavy, compiled only

        artefact: Any = compile_fx(graph, list(inputs), config_patches=self._options or None)
        self.graphs += 1

        def counted(*args: Any) -> Any:
            self._calls.count = getattr(self._calls, "count", 0) + 1
            return artefact(*args)

        return counted


def _leave_counting_to_us() -> None:
    """Turn off torch's own check that a `fullgraph` call ran compiled code (2.13 and later).

    It counts in one number for all threads: a call that begins on another rank's thread sets it
    back, and the first then raises "found no compiled frames" though compiled code ran. A count
    that has begun already, as here, is not begun again. Ours is a thread's own.
    """
    from torch._dynamo import eval_frame  # noqa: PLC0415 - heavy, compiled only

    begin = getattr(eval_frame, "set_fullgraph_compiled_frame_count", None)
    if begin is not None:
        begin(0)


def require_compiler(device: str) -> None:
    """Raise CompilerUnavailableError when no C++ (CPU) or Triton (CUDA) compiler is found."""
    if device != "cpu":
        if importlib.util.find_spec("triton") is None:
            raise CompilerUnavailableError(
                f"mode='compiled' on device={device!r} needs the package triton, which is not "
                "installed. Install it, or use mode='eager'."
            )
        return
    from torch._inductor import config as inductor  # noqa: PLC0415 - heavy, compiled only

    candidates = [name for name in inductor.cpp.cxx if name]
    if not any(shutil.which(str(name)) for name in candidates):
        raise CompilerUnavailableError(
            f"mode='compiled' needs a C++ compiler; looked for {[str(c) for c in candidates]} on "
            "PATH and found none. Install g++ or clang, set CXX, or use mode='eager'."
        )


class CompiledExecution(BlockByBlock):
    """Owns: the count of compiled calls made for one rank; the compiler itself is shared.

    `compiler` is public: a plug-in may hand in another.
    """

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self.compiled_calls = 0
        self.eager_stages = 0

    @property
    def graphs(self) -> int:
        return self.compiler.graphs

    def submit_block(
        self, queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        def attention() -> tuple[Any, ...]:
            rotary = block.kind.rotary
            window = block.kind.window or UNBOUNDED
            return frame.cos[rotary], frame.sin[rotary], *_flat(cache, frame.meta), window

        def whole() -> None:
            frame.x = self._run("whole", COMPILED_COST, block, frame.x, *attention())

        if queue.all_reduce is None:
            queue.submit(f"layer {index} compiled block", whole, cost=COMPILED_COST)
            return

        def attended() -> torch.Tensor:
            y: torch.Tensor = self._run(
                "attention", COMPILED_COST - 1, block, frame.x, *attention()
            )
            return y

        def fed_forward() -> torch.Tensor:
            y: torch.Tensor
            frame.x, y = self._run("feed_forward", 1, block, frame.x, frame.y)
            return y

        def keep(y: torch.Tensor) -> None:
            frame.y = y

        def join() -> None:
            frame.x = self._run("join", 1, block, frame.x, frame.y)

        name = f"layer {index} compiled"
        yield from queue.sum(f"{name} attention", attended, keep, cost=COMPILED_COST - 1)
        yield from queue.sum(f"{name} feed_forward", fed_forward, keep)
        queue.submit(f"{name} join", join)

    def _run(self, region: str, stages: int, *args: Any) -> Any:
        """Run a region that stands for so many eager stages, and count how it ran."""
        out, calls = self.compiler(region, *args)
        self.compiled_calls += calls
        self.eager_stages += 0 if calls else stages
        return out


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
