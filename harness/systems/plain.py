"""A system that runs in this process in one cell or a few: what most adapters have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from harness.axes import ALL_AXES, Plan
from harness.case import Case
from harness.judge.output import Output
from harness.systems.account import Account
from harness.systems.base import Assignment, Encoded, Refused, Session, SystemFailed, SystemRun
from harness.systems.tokens import PromptTokens


class PlainSystem(ABC):
    """A `System` for which only `answer` must be written.

    `answer` returns one array a prompt and notes in `account` each forward call it makes. `values`
    names, for each axis, the values it can run besides the baseline; every other cell is refused.

    Owns: nothing but the tokenizer.
    """

    values: Mapping[str, tuple[str, ...]] = {}
    """axis -> values other than the baseline."""
    why_not: Mapping[str, str] = {}
    """axis -> why its other values cannot be had."""
    costly = False

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self._tokens = PromptTokens(assignment.folder, assignment.checkpoint.reranker)

    @abstractmethod
    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        cell: Mapping[str, str],
        account: Account,
    ) -> Sequence[Output]:
        """One output for each prompt, in order."""

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

    @property
    def num_threads(self) -> int:
        """Threads that compute, asked of what computes."""
        import torch  # noqa: PLC0415 - heavy

        return torch.get_num_threads()

    def about(self) -> Mapping[str, str]:
        """Names and versions of what answers; part of what two sides of a pair must share."""
        return {}

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        return self._tokens.encode(case)

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        del settings
        reason = self.refusal(cell)
        if reason is not None:
            raise Refused(reason)
        return _PlainSession(self, dict(cell))

    def refusal(self, cell: Mapping[str, str]) -> str | None:
        """Why the cell cannot be had, told before anything is loaded."""
        for name, value in cell.items():
            if value != ALL_AXES[name].baseline and value not in self.values.get(name, ()):
                return f"{name}={value}: {self.why_not.get(name, 'it has no such switch')}"
        return None

    def discard(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> None:
        """Nothing is kept of a cell."""
        del cell, settings

    def plant(self, name: str) -> None:
        raise SystemFailed(f"{name!r} cannot be planted: faults are plug-ins of our own engine")

    def unplant(self, name: str) -> None:
        raise SystemFailed(f"{name!r} was not planted")

    def release(self) -> None:  # noqa: B027 - what a system may leave as it is
        """Nothing is kept of a cell."""

    def close(self) -> None:  # noqa: B027 - what a system may leave as it is
        """Forget the model."""


class _PlainSession:
    def __init__(self, system: PlainSystem, cell: Mapping[str, str]) -> None:
        self._system, self._cell = system, cell

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        del plan, taps  # it runs each case one way, and tells nothing of its layers
        system, account = self._system, Account()
        if case.task not in system.tasks:
            raise SystemFailed(
                f"task={case.task!r} is not supported on {system.assignment.checkpoint.name}; "
                f"valid: {', '.join(system.tasks)}"
            )
        outputs = tuple(system.answer(case, prompts, cell=self._cell, account=account))
        witness = account.witness(num_threads=system.num_threads, flags=system.about())
        return SystemRun(outputs=outputs, plan=account.plan, witness=witness)
