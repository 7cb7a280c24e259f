"""One checkpoint made ready in this process: system, reference, cases, executor."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.axes import Cell, baseline, chosen_cells, face
from harness.axes.memory import may_act
from harness.axes.overlap import cannot_overlap
from harness.campaign.corpus import file_of, read_cases, read_corpus
from harness.campaign.execute import CaseExecutor
from harness.campaign.outputs import OutputStore
from harness.campaign.recorder import Clock
from harness.campaign.reference import CaseReference
from harness.campaign.relate import Relator
from harness.campaign.space import aimed_at, draw, draw_for_array, space_of, special_tokens
from harness.campaign.spec import OUT_OF_TIME, Job, RunSpec
from harness.case import Case
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.checkpoints.sizes import sizes_of
from harness.oracle.cache import CachedOracle
from harness.record import DeclaredRecord, NoticeRecord, Record
from harness.strategies.cases import CaseSpace
from harness.systems.base import Assignment
from harness.systems.table import factory


class Workbench:
    """Owns: the system under test and the oracle of one checkpoint, until closed."""

    def __init__(self, spec: RunSpec, name: str, folder: Path) -> None:
        self.spec, self.plan = spec, spec.plan(name)
        self.checkpoint = checkpoint(name)
        self._path = path = path_of(name)
        self.system = factory(spec.system)(
            Assignment(
                checkpoint=self.checkpoint,
                folder=path,
                chunk=self.plan.chunk,
                max_num_seqs=self.plan.max_num_seqs,
                max_model_len=self.plan.max_model_len,
                block_size=self.plan.block_size,
                batch_invariant=spec.batch_invariant,
                long_prefill_token_threshold=(
                    self.plan.chunk // 2 if "kv_pool" in (spec.axes or ()) else 0
                ),
                timeout_s=spec.profile_object.timeout_s,
                dtype=spec.dtype,
                settings=spec.profile_object.settings,
                options=spec.options,
            )
        )
        for plant in spec.plants:
            self.system.plant(plant)
        self.store = OutputStore(folder)
        self.clock = Clock()
        self.reference = CaseReference(oracle=CachedOracle(path), checkpoint=self.checkpoint)
        self.executor = CaseExecutor(
            checkpoint=self.plan,
            system=self.system,
            reference=self.reference,
            # A twin computes in the baseline's own dtype, and the oracle knows no half precision.
            twin=CaseReference(
                oracle=CachedOracle(path, dtype="float32"), checkpoint=self.checkpoint
            )
            if spec.dtype == "float32"
            else None,
            store=self.store,
            reach=sizes_of(path).reach,
            attempts=spec.profile_object.attempts,
            axes=spec.axes,
            clock=self.clock,
            cover=spec.cover,
            production=spec.production or None,
            relator=self._relator() if spec.system == "engine" else None,
        )

    def _relator(self) -> Relator:
        """For our engine only: a relation's witness is read from the steps that ran."""
        token: int | None = getattr(self.system, "refused_token", None)
        refused = frozenset(() if token is None else (token,))
        return Relator(
            plan=self.plan.relations,
            system=self.system,
            causal=self.causal,
            vocabulary=self.vocabulary,
            max_model_len=self.plan.max_model_len,
            reserved=special_tokens(self._path) | refused,
        )

    @property
    def causal(self) -> bool:
        return self.checkpoint.kind == "decoder"

    @property
    def vocabulary(self) -> int:
        """Size of the checkpoint's vocabulary."""
        return sizes_of(self._path).vocab_size

    def cases(self) -> list[Case]:
        """The run's cases for this checkpoint: from the file if one was given, else drawn."""
        if self.spec.cases_file is not None:
            return read_cases(Path(self.spec.cases_file))
        drawn = draw_for_array if self.spec.cover else draw
        return drawn(self._space(), self.plan, self.spec.seed)

    def _space(self) -> CaseSpace:
        plan = replace(self.plan, tasks=tuple(t for t in self.plan.tasks if t in self.system.tasks))
        return space_of(self.checkpoint, self._path, plan, self.system.encode)

    def run(self, job: Job) -> Iterator[Record]:
        """Records of one shard, as they become known."""
        if job.corpus:
            yield from self._run_corpus(job)
            return
        mine = [
            (index, case)
            for index, case in enumerate(self.cases())
            if index % job.num_shards == job.shard and case.case_id not in job.done
        ]
        if self.spec.cases_file is None and not self.spec.cover:
            yield DeclaredRecord(
                checkpoint=self.checkpoint.name, boundaries=aimed_at(self._space(), self.plan)
            )
        cells = chosen_cells(self.executor.cells, self.plan.choice)
        if self.system.costly:
            yield from self.executor.run_in_turn([case for _, case in mine], cells)
            return
        yield from self.executor.start()
        settings = self._settings()
        # By setting, so that the instances of one are closed before those of the next are opened:
        # a warm engine for every cell and setting at once would not fit the memory.
        for turn, chosen in enumerate(settings):
            for index, case in mine:
                if index // job.num_shards % len(settings) == turn:
                    if job.until is not None and time.time() >= job.until:
                        yield NoticeRecord(text=f"{job.label}: {OUT_OF_TIME}")
                        return
                    processes = index < self.plan.process_cases and self.causal
                    cells = chosen_cells(self.executor.cells, self.plan.choice)
                    if index % self.plan.whole_lattice_every:
                        cells = face(cells, index)
                    cells = tuple(cell for cell in cells if may_act(cell, case.task))
                    yield from self.executor.run(case, chosen, cells=cells, processes=processes)
            self.system.release()

    def _settings(self) -> Sequence[Mapping[str, str]]:
        """What is rotated over the cases; in a covering array, where async can act."""
        settings = tuple(self._under(chosen) for chosen in self.system.settings)
        if not self.spec.cover:
            return settings
        apart = {tuple(sorted(chosen.items())): chosen for chosen in settings}.values()
        acting = Cell.of({**baseline(), "async": "async"})
        return tuple(s for s in apart if not cannot_overlap(acting, s)) or settings

    def _run_corpus(self, job: Job) -> Iterator[Record]:
        """Every case in every cell, under the settings that it was found under."""
        yield from self.executor.start()
        cells = chosen_cells(self.executor.cells, self.plan.choice)
        for kept in read_corpus(file_of(Path(self.spec.corpus or ""), job.checkpoint)):
            if kept.case.case_id not in job.done:
                settings = self._under({**self.system.settings[0], **kept.settings})
                yield from self.executor.run(kept.case, settings, cells=cells)
                self.system.release()  # the next one's settings are others

    def _under(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """The settings of a case, as far as no axis of the run decides them."""
        if "buffers" in (self.spec.axes or ()):
            return {**settings, "inputs": "fenced"}
        return settings

    def close(self) -> None:
        self.system.close()
