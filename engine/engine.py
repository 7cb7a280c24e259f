"""The engine: requests in, pooled rows out, by way of a scheduler and an executor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from engine.capabilities import limits_of, resolve
from engine.config import EngineConfig
from engine.errors import RequestError
from engine.executor import create_executor
from engine.executor.base import RunAccount
from engine.kv.blocks import BlockPool
from engine.kv.prefix import Prefix, block_keys
from engine.loop import RunLoop
from engine.models.config import ModelConfig, read_model_config
from engine.plan import StepPlan, plan_digest
from engine.pooling.options import read_pooling_options
from engine.pooling.tasks import TaskRules
from engine.request import PoolingOutput, PoolingRequest, Task
from engine.resources import Resources
from engine.scheduler.base import Scheduler
from engine.scheduler.fcfs import FcfsScheduler
from engine.scheduler.replay import ReplayScheduler
from engine.session import Session
from engine.taps import Tap
from engine.witness import RunWitness


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One run's outputs and the evidence of how they came about."""

    outputs: Mapping[str, PoolingOutput]
    refused: Mapping[str, str]
    """Request id -> why it was refused; the other requests ran."""
    failed: Mapping[str, str]
    """Request id -> what its head raised; the other requests have their outputs."""
    plan: tuple[StepPlan, ...]
    witness: RunWitness
    taps: tuple[Tap, ...]


class Engine:
    """Owns: the executor and, during a run, the scheduler. Use as a context manager.

    Engines of one process may share `resources` (weights, compiled code).
    """

    def __init__(self, config: EngineConfig, *, resources: Resources | None = None) -> None:
        """Start up; raises ConfigurationError or CheckpointError before anything is half-built."""
        self.model_config: ModelConfig = read_model_config(config.model)
        self.config = resolve(config, self.model_config)
        self._limits = limits_of(self.config, self.model_config)
        self.rules: TaskRules = read_pooling_options(self.config, self.model_config).rules
        self._executor = create_executor(self.config, self._limits, resources)

    def run(
        self,
        requests: Sequence[PoolingRequest],
        *,
        plan: Sequence[StepPlan] | None = None,
        arrivals: Sequence[int] = (),
        taps: bool = False,
        num_blocks: int | None = None,
    ) -> RunResult:
        """Run requests to the end.

        Args:
            plan: replay these steps instead of scheduling freely; PlanError if they do not fit.
            arrivals: for each request the step before which it arrives; empty: all at once.
            taps: also return hidden states per (request, layer, token).
            num_blocks: use no more than so many of the KV blocks there are; None: all of them.
        """
        loop = self._loop(plan, num_blocks)
        self._executor.begin_run(taps=taps)
        loop.run(requests, arrivals, replayed=plan is not None)
        account = self._executor.end_run()
        return RunResult(
            outputs=loop.outputs,
            refused=loop.refused,
            failed=loop.failed,
            plan=tuple(loop.plan),
            witness=self._witness(loop, account),
            taps=account.taps,
        )

    def session(self) -> Session:
        """An open-ended run, for a server: requests come and go while others run.

        The engine can run nothing else until the session is closed.
        """
        self._executor.begin_run(taps=False)
        return Session(self._loop(None), self._executor, self._witness)

    @property
    def supported_tasks(self) -> tuple[Task, ...]:
        return self.rules.supported_tasks

    def check(self, request: PoolingRequest) -> None:
        """Raise RequestError (or UnsupportedTaskError) for a request that cannot be run."""
        name, vocabulary = request.request_id, self.model_config.vocab_size
        if not request.token_ids:
            raise RequestError(f"request {name!r} has an empty prompt; give at least one token")
        wrong = [t for t in request.token_ids if not 0 <= t < vocabulary]
        if wrong:
            raise RequestError(
                f"request {name!r}: token id {wrong[0]} is out of range; "
                f"{self.config.model.name} has ids 0..{vocabulary - 1}"
            )
        if request.num_tokens > self._limits.max_model_len:
            raise RequestError(
                f"request {name!r} has {request.num_tokens} tokens, more than "
                f"max_model_len={self._limits.max_model_len}; shorten it or raise max_model_len"
            )
        if request.type_ids and len(request.type_ids) != request.num_tokens:
            raise RequestError(
                f"request {name!r}: {len(request.type_ids)} type ids for "
                f"{request.num_tokens} tokens"
            )
        types = max(self.model_config.type_vocab_size, 1)
        foreign = [t for t in request.type_ids if not 0 <= t < types]
        if foreign:
            raise RequestError(
                f"request {name!r}: type id {foreign[0]} is out of range; "
                f"{self.config.model.name} has segments 0..{types - 1}. Leave type_ids out, or "
                "use a model that has segments"
            )
        if self.model_config.padding_id in request.token_ids:
            raise RequestError(
                f"request {name!r} holds the padding token {self.model_config.padding_id}, which "
                f"{self.model_config.architecture} gives no position of its own; take it out"
            )
        if request.cache_salt is not None and not self.config.cache.prefix_cache:
            raise RequestError(
                f"request {name!r}: cache_salt={request.cache_salt!r} does not apply without a "
                "prefix cache; leave it out, or turn prefix_cache on"
            )
        self.rules.check_params(request)

    def apply_plugin(self, name: str) -> None:
        """Apply `module:callable` to every rank's runner, between runs."""
        self._executor.apply_plugin(name)

    def remove_plugin(self, name: str) -> None:
        """Undo `apply_plugin`."""
        self._executor.remove_plugin(name)

    def close(self) -> None:
        self._executor.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _loop(self, plan: Sequence[StepPlan] | None, num_blocks: int | None = None) -> RunLoop:
        return RunLoop(
            executor=self._executor,
            scheduler=self._scheduler(plan, num_blocks),
            max_in_flight=self.config.max_steps_in_flight,
            check=self.check,
            prefix=self._prefix,
            check_ledgers=self.config.check_ledgers,
        )

    def _prefix(self, request: PoolingRequest) -> Prefix:
        """What the cache may know a prompt by.

        Every prompt publishes its blocks, since keys and values do not depend on the task. Only an
        answer that is pooled from the last row alone reads them: CLS, MEAN and all token-level
        tasks need the hidden states of every token, and those of cached tokens are gone.
        """
        if not self.config.cache.prefix_cache:
            return Prefix()
        return Prefix(
            keys=block_keys(
                request.token_ids,
                request.type_ids,
                block_size=self.config.cache.block_size,
                context=json.dumps(request.cache_salt),
            ),
            readable=self.rules.needs_last_row_only(request.task),
        )

    def _scheduler(self, plan: Sequence[StepPlan] | None, num_blocks: int | None) -> Scheduler:
        limits, causal = self._limits, self.model_config.causal
        pool = (
            BlockPool(
                min(num_blocks or limits.num_blocks, limits.num_blocks),
                self.config.cache.block_size,
            )
            if causal
            else None
        )
        if plan is not None:
            return ReplayScheduler(plan, pool, limits.max_slots)
        return FcfsScheduler(self.config.scheduler, pool, limits.max_slots, causal)

    def _witness(self, loop: RunLoop, account: RunAccount) -> RunWitness:
        return RunWitness(
            plan_digest=plan_digest(loop.plan),
            steps=len(loop.plan),
            chunks=dict(account.chunks),
            padded_tokens=account.padded_tokens,
            stream_policy=str(self.config.stream),
            instruction_set=account.instruction_set,
            flags=dict(account.flags),
            memory=loop.memory,
            ranks=account.ranks,
        )
