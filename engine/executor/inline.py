"""All ranks in this process, over links with the same non-blocking semantics. Deterministic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.assembly import build_runner
from engine.collectives import InlineAllReduce, advance_together
from engine.config import EngineConfig
from engine.executor.base import RunAccount
from engine.handle import RunnerHandle
from engine.links import InlineLink
from engine.memory import RunnerLimits
from engine.placement import Place
from engine.plan import StepPlan
from engine.plugins import Plugins
from engine.request import PoolingRequest, PoolingResult
from engine.resources import Resources
from engine.runner import Runner
from engine.scheduler.base import ScheduledStep
from engine.stream import create_device
from engine.stream.base import Device
from engine.taps import Tap

DRIVER = "driver"
"""Host timeline of whoever schedules; ranks learn of its work only through messages."""


class InlineExecutor:
    """Owns: every rank's runner, the links between them and the device they share."""

    def __init__(self, config: EngineConfig, limits: RunnerLimits, resources: Resources) -> None:
        kind = "cuda" if config.device.startswith("cuda") else "cpu"
        self._device = create_device(kind, config.stream, config.parallel.num_ranks)
        places = [Place.of(config.parallel, rank) for rank in range(config.parallel.num_ranks)]
        links = {place.rank: InlineLink() for place in places if place.target is not None}
        sums = self._sums(config, limits, resources, places)
        self.runners: Sequence[Runner] = [
            build_runner(
                config=config,
                limits=limits,
                resources=resources,
                device=self._device,
                place=place,
                receive_from=None if place.source is None else links[place.source],
                send_to=links.get(place.rank),
                all_reduce=sums.get(place.rank),
            )
            for place in places
        ]
        self._stages = [
            [self.runners[rank] for rank in place.peers]
            for place in places
            if place.tensor_rank == 0
        ]
        self._plugins = [Plugins(runner) for runner in self.runners]
        for name in config.plugins:
            self.apply_plugin(name)

    def begin_run(self, *, taps: bool) -> None:
        self._device.begin_run()
        for runner in self.runners:
            runner.begin_run(taps=taps)

    def submit(self, step: ScheduledStep, requests: Mapping[str, PoolingRequest]) -> _Resolved:
        handles: list[RunnerHandle] = []
        for peers in self._stages:
            for runner in peers:
                self._device.join(runner.host, DRIVER)
            handles += advance_together([runner.submission(step, requests) for runner in peers])
        return _Resolved(handles[-1], self._device, self.runners[-1].host)

    def abort(self, request_id: str) -> None:
        for runner in self.runners:
            runner.abort(request_id)

    def end_run(self) -> RunAccount:
        self._device.drain()
        witnesses = [runner.witness() for runner in self.runners]
        # One device, one happens-before check: report it once.
        ranks = [witnesses[0], *(replace(w, hazards=()) for w in witnesses[1:])]
        flags = self.runners[-1].flags()
        taps: list[Tap] = []
        for runner in self.runners:
            taps.extend(runner.taps.taken())
            runner.taps.begin(enabled=False)
        return RunAccount(
            ranks=tuple(ranks),
            chunks=self.runners[-1].account.chunks,
            padded_tokens=tuple(self.runners[-1].account.padded_tokens),
            instruction_set=flags.get("instruction_set", ""),
            flags=flags,
            taps=tuple(taps),
        )

    def apply_plugin(self, name: str) -> None:
        for plugins in self._plugins:
            plugins.apply(name)

    def remove_plugin(self, name: str) -> None:
        for plugins in self._plugins:
            plugins.remove(name)

    def close(self) -> None:
        self._device.close()

    def _sums(
        self,
        config: EngineConfig,
        limits: RunnerLimits,
        resources: Resources,
        places: Sequence[Place],
    ) -> dict[int, InlineAllReduce]:
        """Each rank's end of its stage's sums; none with one tensor rank."""
        ends: dict[int, InlineAllReduce] = {}
        if config.parallel.tensor_parallel_size > 1:
            for place in places:
                like = next(resources.stage(place).blocks[0].products())
                width = resources.stage(place).config.hidden_size
                rank = place.rank
                ends[rank] = InlineAllReduce(self._device, rank, limits.max_tokens, width, like)
            for place in places:
                InlineAllReduce.connect([ends[rank] for rank in place.peers])
        return ends


class _Resolved:
    """The last rank's handle; taking its result tells the driver what that rank has done."""

    def __init__(self, handle: RunnerHandle, device: Device, host: str) -> None:
        self._handle, self._device, self._host = handle, device, host

    @property
    def plan(self) -> StepPlan:
        return self._handle.plan

    def result(self) -> tuple[PoolingResult, ...]:
        outputs = self._handle.result()
        self._device.join(DRIVER, self._host)
        return outputs
