"""Graph: a stage recorded once for each bucket of rows, replayed on persistent memory.

A step is padded to its bucket, its inputs are copied to the recording's own, and its output lies in
a persistent buffer until the next replay. On CUDA the recordings are CUDA graphs; on the CPU the
same compiled callables run on the same kind of memory, so a borrowed output or a padding row that
is not inert gives the same wrong answer there.

Where the host has to read sizes back from the device to attend, attention cannot be captured: the
stage is then recorded piecewise, with attention run eagerly between the pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from engine.execution.base import Frame, Layer, Tap
from engine.execution.buckets import bucket_of
from engine.execution.compiled import COMPILED_COST, UNBOUNDED
from engine.execution.recording import Recorder, Recording, Work
from engine.execution.static import StaticBuffers
from engine.stream.base import Device

if TYPE_CHECKING:
    from engine.execution.compiled import Compiler
    from engine.execution.queue import StepQueue


class GraphExecution:
    """Owns: one rank's static buffers, and the recordings of its stage by bucket."""

    def __init__(
        self, compiler: Compiler, buckets: Sequence[int], record: Recorder, *, piecewise: bool
    ) -> None:
        self._compiler, self._buckets = compiler, tuple(buckets)
        self._record, self._piecewise = record, piecewise
        self._recordings: dict[tuple[int, bool], Recording] = {}
        self.compiled_calls = 0
        self.eager_stages = 0

    @property
    def graphs(self) -> int:
        return self._compiler.graphs

    @property
    def replays(self) -> Mapping[int, int]:
        found: Counter[int] = Counter()
        for (rows, _), recording in self._recordings.items():
            found[rows] += recording.replays
        return found

    def padded_rows(self, rows: int) -> int:
        return bucket_of(self._buckets, rows)

    def prepare(self, device: Device, rank: int, layers: Sequence[Layer], idle: Frame) -> None:
        """Record every bucket. An idle step keeps no key and no value, so this changes nothing."""
        self._layers = layers
        self._static = StaticBuffers(device, rank, layers, idle)
        for rows in reversed(self._buckets):
            self._recordings[rows, False] = self._recording(rows, tapped=False)

    def submit_stage(
        self, queue: StepQueue, layers: Sequence[Layer], frame: Frame, tap: Tap | None
    ) -> Iterator[None]:
        rows, static = queue.rows, self._static
        key = (rows, tap is not None)
        if key not in self._recordings:
            with torch.inference_mode():
                self._recordings[key] = self._recording(rows, tapped=True)
        recording = self._recordings[key]

        def load() -> None:
            static.load(frame, rows)

        def replay() -> None:
            recording.replay()
            frame.x = static.out.tensor[:rows]

        queue.submit("load graph inputs", load, writes=static.inputs)
        queue.submit(
            f"replay graph of {rows} rows",
            replay,
            cost=COMPILED_COST * len(layers),
            reads=static.inputs,
            writes=(static.out,),
        )
        if tap is not None:
            for place, layer in enumerate(layers):
                rows_of = partial(static.layer_output, place, rows)
                queue.submit(f"tap {layer.index}", partial(_tap, tap, layer.index + 1, rows_of))
        yield from ()

    def _recording(self, rows: int, *, tapped: bool) -> Recording:
        if self._piecewise:
            return Recording(self._pieces(rows, tapped=tapped))
        return Recording([self._record(partial(self._stage, rows, tapped=tapped))])

    def _stage(self, rows: int, *, tapped: bool) -> None:
        static = self._static
        x = static.x[:rows]
        for place, layer in enumerate(self._layers):
            window = layer.block.kind.window or UNBOUNDED
            arguments = static.attention(layer, rows)
            x = self._run("whole", COMPILED_COST, layer.block, x, *arguments, window)
            if tapped:
                static.layer_output(place, rows).copy_(x)
        static.out.tensor[:rows].copy_(x)

    def _pieces(self, rows: int, *, tapped: bool) -> list[Work]:
        """[in 0], attend 0, [out 0, in 1], attend 1, ..., [out last]; in brackets: recorded."""
        pieces: list[Work] = []
        count = len(self._layers)
        for place in range(count + 1):
            pieces.append(self._record(partial(self._between, place, rows, tapped=tapped)))
            if place < count:
                pieces.append(partial(self._attend, place, rows))
        return pieces

    def _between(self, place: int, rows: int, *, tapped: bool) -> None:
        """What follows the attention of layer `place` - 1 and leads to that of layer `place`."""
        static = self._static
        x = static.x[:rows]
        if place > 0:
            block = self._layers[place - 1].block
            x = self._run("after_attention", 2, block, x, static.attended[:rows])
            target = static.x if place < len(self._layers) else static.out.tensor
            target[:rows].copy_(x)
            if tapped:
                static.layer_output(place - 1, rows).copy_(x)
        if place < len(self._layers):
            layer = self._layers[place]
            cos, sin = static.angles(layer, rows)
            heads = self._run("before_attention", 1, layer.block, x, cos, sin)
            for target, rows_of in zip(static.heads, heads, strict=True):
                target[:rows].copy_(rows_of)

    def _attend(self, place: int, rows: int) -> None:
        self.eager_stages += 1
        static, layer = self._static, self._layers[place]
        q, k, v = (head[:rows] for head in static.heads)
        window = layer.block.kind.window
        attended = layer.block.attend(q, k, v, layer.cache, static.metadata(rows), window)
        static.attended[:rows].copy_(attended)

    def _run(self, region: str, stages: int, *args: Any) -> Any:
        """Run a region that stands for so many eager stages, and count how it ran.

        A CUDA graph does not come back here when it is replayed: there `replays` tells what ran.
        """
        out, calls = self._compiler(region, *args)
        self.compiled_calls += calls
        self.eager_stages += 0 if calls else stages
        return out


def _tap(tap: Tap, layer: int, rows_of: Any) -> None:
    tap(layer, rows_of())
