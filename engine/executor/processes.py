"""One process a rank on this machine, joined by torch.distributed."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from engine.config import EngineConfig, config_to_json
from engine.errors import ConfigurationError, EngineError
from engine.executor import wire, worker
from engine.executor.remote import RemoteExecutor
from engine.memory import RunnerLimits


class ProcessExecutor(RemoteExecutor):
    """Owns: the worker processes."""

    def __init__(self, config: EngineConfig, limits: RunnerLimits) -> None:
        """Start the ranks. Raises ConfigurationError: more of them than there are CUDA devices."""
        super().__init__(config)
        _require_devices(config)
        self._store = worker.new_store()
        self._processes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        arguments = (json.dumps(config_to_json(config)), json.dumps(asdict(limits)))
        for rank in range(config.parallel.num_ranks):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=worker.main,
                args=(theirs, *arguments, rank, self._store),
                daemon=True,
                name=f"parity-rank-{rank}",
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        try:
            self._await_ready()
        except EngineError:
            self.close()
            raise

    def close(self) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            try:
                if process.is_alive():
                    wire.send(pipe, {"verb": "close"})
            except OSError:
                pass  # the worker is already gone; it is joined below
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()
        self._pipes, self._processes = [], []
        shutil.rmtree(Path(self._store).parent, ignore_errors=True)

    def _name_of(self, rank: int) -> str:
        return f"rank {rank} (pid {self._processes[rank].pid})"

    def _end_of(self, rank: int) -> str:
        self._processes[rank].join(timeout=5)
        return f"died with exit code {self._processes[rank].exitcode}"


def _require_devices(config: EngineConfig) -> None:
    ranks, there = config.parallel.num_ranks, torch.cuda.device_count()
    if config.device.startswith("cuda") and ranks > there:
        raise ConfigurationError(
            f"executor='processes' with {ranks} ranks on device='cuda': NCCL wants a device for "
            f"each rank, and this machine has {there}. Use executor='inline', which keeps all "
            f"ranks on one device, or at most {there} ranks"
        )
