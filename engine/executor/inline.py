"""All ranks in this process, over links with the same non-blocking semantics. Deterministic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.assembly import build_runner
from engine.config import EngineConfig
from engine.executor.base import RunAccount
from engine.links import InlineLink
from engine.plan import StepPlan
from engine.plugins import Plugins
from engine.request import PoolingOutput, PoolingRequest
from engine.resources import Resources
from engine.runner import Runner, RunnerHandle, RunnerLimits
from engine.scheduler.base import ScheduledStep
from engine.stream import create_device
from engine.stream.base import Device
from engine.taps import Tap

DRIVER = "driver"
"""Host timeline of whoever schedules; ranks learn of its work only through messages."""


class InlineExecutor:
    """Owns: every rank's runner, the links between them and the device they share."""

    def __init__(self, config: EngineConfig, limits: RunnerLimits, resources: Resources) -> None:
        size = config.parallel.pipeline_parallel_size
        kind = "cuda" if config.device.startswith("cuda") else "cpu"
        self._device = create_device(kind, config.stream, size)
        links = [InlineLink() for _ in range(size - 1)]
        self.runners: Sequence[Runner] = [
            build_runner(
                config=config,
                limits=limits,
                resources=resources,
                device=self._device,
                rank=rank,
                receive_from=links[rank - 1] if rank else None,
                send_to=links[rank] if rank < size - 1 else None,
            )
            for rank in range(size)
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
        for runner in self.runners:
            self._device.join(runner.host, DRIVER)
            handles.append(runner.submit(step, requests))
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
            chunks=self.runners[-1].chunks,
            padded_tokens=tuple(self.runners[-1].padded_tokens),
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


class _Resolved:
    """The last rank's handle; taking its result tells the driver what that rank has done."""

    def __init__(self, handle: RunnerHandle, device: Device, host: str) -> None:
        self._handle, self._device, self._host = handle, device, host

    @property
    def plan(self) -> StepPlan:
        return self._handle.plan

    def result(self) -> tuple[PoolingOutput, ...]:
        outputs = self._handle.result()
        self._device.join(DRIVER, self._host)
        return outputs
