"""One checkpoint kept warm: a case goes in, its judged pairs come out at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.attribution import find
from harness.axes import AXES, Cell
from harness.campaign.judging import CheckpointJudge, Executed, executed
from harness.campaign.rivalry import Compared, compare
from harness.campaign.space import draw, space_of
from harness.campaign.spec import RunSpec
from harness.campaign.workbench import Workbench
from harness.case import Case
from harness.checkpoints.catalogue import path_of
from harness.judge.bounds import Bounds
from harness.judge.output import Output
from harness.record import ExecutionRecord, FindingRecord, Outcome, PairRecord
from harness.search import Budget
from harness.search.reducer import as_token_ids

PROFILE = "pr"
"""Trials draw their cases as this profile does."""


class TrialBench:
    """Owns: the warm engines of one checkpoint and the folder that its outputs go to."""

    def __init__(
        self,
        checkpoint: str,
        folder: Path,
        *,
        dtype: str = "float32",
        axes: Sequence[str] = (),
    ) -> None:
        """`axes` that the cells vary; none: the four primary ones."""
        spec = RunSpec(
            profile=PROFILE,
            seed=0,
            checkpoints=(checkpoint,),
            axes=tuple(axes or AXES),
            dtype=dtype,
        )
        self._bench = Workbench(spec, checkpoint, folder)
        self.space = space_of(
            self._bench.checkpoint,
            path_of(checkpoint),
            self._bench.plan,
            self._bench.system.encode,
        )
        self.settings: Sequence[Mapping[str, str]] = spec.profile_object.settings
        self.bounds = Bounds()
        self._right: dict[tuple[str, tuple[tuple[str, str], ...]], Mapping[str, str]] = {}

    def start(self) -> None:
        """Open every cell that there is and compile, so that no trial pays for it."""
        list(self._bench.executor.start())

    @property
    def chunk(self) -> int:
        """Token budget of a chunked cell."""
        return self._bench.plan.chunk

    def cases(self, seed: int) -> list[Case]:
        """The profile's cases for a seed, in the order a campaign draws them."""
        return draw(self.space, self._bench.plan, seed)

    def as_tokens(self, case: Case) -> Case:
        """The case with every prompt as its token ids."""
        prompts = self._bench.system.encode(case)
        return replace(
            case,
            prompts=tuple(
                as_token_ids(prompt, encoded.token_ids, encoded.type_ids)
                for prompt, encoded in zip(case.prompts, prompts, strict=True)
            ),
        )

    def plant(self, plugin: str) -> None:
        """Put a plug-in into every engine, for good."""
        self._bench.system.plant(plugin)

    def pairs_once(self, case: Case, settings: Mapping[str, str]) -> list[PairRecord]:
        """Judged pairs under settings that will not come again: the engines are closed after."""
        _, pairs = self.judged(case, settings)
        self._bench.system.release()
        return pairs

    @contextmanager
    def planted(self, plugin: str) -> Iterator[None]:
        """The plug-in in every engine, those that are opened meanwhile too; taken out after.

        Bounds begin anew: those of a baseline that was made wrong must not serve the next one.
        """
        self._bench.system.plant(plugin)
        self.bounds = Bounds()
        try:
            yield
        finally:
            self._bench.system.unplant(plugin)
            self.bounds = Bounds()

    def judged(
        self,
        case: Case,
        settings: Mapping[str, str],
        *,
        cells: Sequence[Cell] | None = None,
    ) -> tuple[list[Executed], list[PairRecord]]:
        """The case in every cell, its oracle and its power, judged with what was seen so far.

        `cells`: only these, the baseline first.
        """
        records = list(self._bench.executor.run(case, settings, cells=cells))
        cases = executed(records)[self._bench.plan.name]
        judge = CheckpointJudge(
            dtype=self._bench.system.dtype,
            causal=self._bench.causal,
            chunk=self.chunk,
            store=self._bench.store,
            bounds=self.bounds,
        )
        return cases, [r for r in judge.judge(cases) if isinstance(r, PairRecord)]

    def answers(self, case: Case, settings: Mapping[str, str], cell: Cell) -> tuple[Output, ...]:
        """What the case gets in one cell; nothing is recorded or judged."""
        system = self._bench.system
        return system.open(cell, settings).run(case, system.encode(case)).outputs

    def right(self, case: Case, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Execution id -> digest of its outputs, of the engine as it is; run once and remembered.

        Ask for it while nothing is planted.
        """
        key = (case.case_id, tuple(sorted(settings.items())))
        if key not in self._right:
            records = self._bench.executor.run(case, settings)
            self._right[key] = {
                r.execution_id: r.output_digest for r in records if isinstance(r, ExecutionRecord)
            }
        return self._right[key]

    def compared(
        self, cases: Sequence[Executed], pairs: Sequence[PairRecord]
    ) -> Iterator[Compared]:
        """What each rule says of the judged pairs."""
        return compare(cases, pairs, self._bench.system.dtype, self._bench.store)

    def findings(
        self, cases: Sequence[Executed], pairs: Sequence[PairRecord], budget: Budget
    ) -> list[FindingRecord]:
        """What attribution makes of failing pairs; told nothing but the records."""
        found = find(
            cases,
            pairs,
            system=self._bench.system,
            plan=self._bench.plan,
            store=self._bench.store,
            bounds=self.bounds,
            run_id="trial",
            oracle=self._bench.reference,
            policies=(),
            budget=budget,
        )
        return list(found)

    def close(self) -> None:
        self._bench.close()


def fails(pairs: Sequence[PairRecord]) -> bool:
    """Whether any pair is a FAIL."""
    return any(pair.outcome is Outcome.FAIL for pair in pairs)
