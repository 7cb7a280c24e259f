"""From one group of failures to its finding: shrink, attribute, probe, localise, tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.attribution.laboratory import RACY_ATTEMPTS, Laboratory
from harness.attribution.probe import (
    PolicyProbe,
    everywhere,
    hiding,
    probe_policies,
    tell_policies,
)
from harness.attribution.race import tell_race
from harness.attribution.recorded import Failure, Group
from harness.attribution.script import Configurable, Reporting, script
from harness.attribution.shrink import SHRINKING, Shrunk, shrink
from harness.attribution.signature import (
    ANY_POLICY,
    FailureKind,
    Signature,
    is_racy,
)
from harness.attribution.table import CellState, Table
from harness.attribution.watch import Watch, loosest_limit
from harness.attribution.wording import (
    output_of,
    settings_conditions,
    smallest_case,
    title,
)
from harness.axes import Plan, baseline, inline
from harness.campaign.profile import CheckpointPlan
from harness.case import Case
from harness.judge.output import kind_of
from harness.localise import Localisation
from harness.record import FindingRecord, Outcome
from harness.search import Budget
from harness.systems.base import Spelling

_PROBED = (FailureKind.DIFFERENCE, FailureKind.HAZARD)
TRIES = 3
"""Cases of a group tried before it is reported as it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigator:
    """Everything that turns groups of one checkpoint into findings. Holds no state."""

    laboratory: Laboratory
    plan: CheckpointPlan
    policies: Sequence[Mapping[str, str]]
    run_id: str
    plants: Sequence[str]

    def finding(self, group: Group, budget: Budget) -> FindingRecord:
        """The group's finding. Never raises for want of budget: it then says what was left out."""
        laboratory = self.laboratory.within(budget)
        failure, shrunk = self._representative(group, laboratory, budget)
        kind, table = shrunk.table.kind, shrunk.table
        settings = {k: v for k, v in failure.settings.items() if k != "executor"}
        signature = replace(group.signature, sets=table.sets)
        conditions: list[str] = []
        probes = self._probe(shrunk, settings, laboratory, budget)
        if probes and everywhere(probes, table.sets):
            signature = replace(signature, policy=ANY_POLICY)
        masked = masks_of(group, table)
        lucky = is_racy(settings, kind)
        if shrunk.reproduced and not lucky and not budget.exhausted and kind in _PROBED:
            for variant in hiding(
                shrunk.case,
                table.sets,
                laboratory,
                kind=kind,
                settings=settings,
                ids=_ids(failure.case, laboratory),
                chunk=self.plan.chunk,
                max_len=self.plan.max_model_len,
            ):
                masked.add(variant.mask)
                conditions.append(variant.condition)
        guilty = table.smallest_bad
        if shrunk.reproduced and lucky and guilty is not None:
            conditions += tell_race(shrunk.case, settings, guilty, kind, laboratory, budget)
        where: Localisation | None = None
        watched: tuple[str, ...] = ()
        if budget.calls:
            where, watched = Watch(shrunk, laboratory).localise(settings, probes)
        worst = _worst(group, table)
        heading = title(shrunk.case.task, signature)
        return FindingRecord(
            finding_id=signature.finding_id,
            signature=str(signature),
            title=heading,
            checkpoint=self.plan.name,
            task=shrunk.case.task,
            outcome=Outcome.FAIL,
            case=shrunk.case.to_json(),
            pairs=tuple(dict.fromkeys(p.pair_id for f in group.failures for p in f.pairs)),
            minimal_sets=tuple(tuple(sorted(values)) for values in table.sets),
            masked_by=tuple(sorted(masked)),
            conditions=(
                *settings_conditions(settings, loosest_limit(table, laboratory.limits)),
                *self._conditions(shrunk, signature),
                *conditions,
                *tell_policies(probes, table.sets),
                *watched,
                *_caveats(shrunk, settings, kind, budget),
            ),
            truth_table=table.rows,
            metric=_metric(shrunk.case, kind),
            worst=float("inf") if worst is None or worst.value is None else worst.value,
            bound=None if worst is None else worst.limit,
            first_divergence=None if where is None else where.first,
            token_errors=() if where is None else where.token_errors,
            token_cosines=() if where is None else where.token_cosines,
            layer_errors=() if where is None else where.layer_errors,
            token_texts=() if where is None else self._spelled(shrunk.case),
            chunk_edges=() if where is None else where.chunk_edges,
            reproduce=f"parity replay {signature.finding_id} --run {self.run_id}",
            script=self._script(heading, shrunk, settings, worst),
        )

    def _representative(
        self, group: Group, laboratory: Laboratory, budget: Budget
    ) -> tuple[Failure, Shrunk]:
        """The smallest case that fails again, shrunk; else the smallest as it was recorded."""
        first: tuple[Failure, Shrunk] | None = None
        for failure in group.smallest_first[:TRIES]:
            cells = tuple(failure.table.states)
            with budget.counting(SHRINKING):
                found = shrink(
                    failure, laboratory, cells=cells, chunk=self.plan.chunk, budget=budget
                )
            first = first or (failure, found)
            if found.reproduced:
                return failure, found
            if budget.exhausted:
                break
        assert first is not None, "a group holds at least one failure"
        return first

    def _probe(
        self,
        shrunk: Shrunk,
        settings: Mapping[str, str],
        laboratory: Laboratory,
        budget: Budget,
    ) -> tuple[PolicyProbe, ...]:
        kind = shrunk.table.kind
        if not shrunk.reproduced or budget.exhausted or kind not in _PROBED:
            return ()
        return probe_policies(
            shrunk.case,
            shrunk.table.sets,
            laboratory,
            kind=kind,
            policies=[p for p in self.policies if not _same(p, settings)],
            cells=tuple(shrunk.table.states),
        )

    def _conditions(self, shrunk: Shrunk, signature: Signature) -> tuple[str, ...]:
        cell = shrunk.table.smallest_bad
        plan: Plan = () if cell is None else shrunk.table.runs[cell].plan
        split = cell is not None and cell.get("chunk") == "chunked"
        lengths = shrunk.table.subject.lengths
        return (
            smallest_case(lengths, plan, chunk=self.plan.chunk, split=split),
            output_of(shrunk.case, signature.level),
        )

    def _spelled(self, case: Case) -> tuple[tuple[str, ...], ...]:
        system = self.laboratory.system
        return system.spell(system.encode(case)) if isinstance(system, Spelling) else ()

    def _script(
        self,
        heading: str,
        shrunk: Shrunk,
        settings: Mapping[str, str],
        worst: CellState | None,
    ) -> str:
        """Empty for a system that keeps its configuration to itself."""
        system, table = self.laboratory.system, shrunk.table
        cell, reference = table.smallest_bad, table.runs.get(baseline())
        if cell is None or reference is None or table.kind is not FailureKind.DIFFERENCE:
            return ""
        alone = inline(settings)
        limit = table.states[cell].limit if worst is not None else 0.0
        if isinstance(system, Reporting):
            return system.report_script(
                shrunk.case,
                system.encode(shrunk.case),
                title=heading,
                reference=baseline(),
                candidate=cell,
                limit=limit,
            )
        if not isinstance(system, Configurable):
            return ""
        return script(
            title=heading,
            case=shrunk.case,
            prompts=system.encode(shrunk.case),
            reference=system.configuration(baseline(), alone),
            reference_plan=reference.plan,
            candidate=system.configuration(cell, alone),
            candidate_plan=table.runs[cell].plan,
            plants=self.plants,
            limit=limit,
            attempts=RACY_ATTEMPTS if is_racy(settings, table.kind) else 1,
        )


def _ids(case: Case, laboratory: Laboratory) -> tuple[int, ...]:
    """The distinct token ids of a case, in order: known to be valid, and not all alike."""
    prompts = laboratory.system.encode(case)
    return tuple(dict.fromkeys(token for prompt in prompts for token in prompt.token_ids))


def _same(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    return all(a.get(name) == b.get(name) for name in ("stream_policy", "inputs"))


def masks_of(group: Group, *tables: Table) -> set[str]:
    """What hides the failure in any case of the group; nothing where hiding may be luck."""
    kind = group.signature.kind
    known = [f.table for f in group.failures if not is_racy(f.settings, kind)]
    own = tables if known else ()
    return set[str]().union(*(table.masks for table in (*own, *known)))


def _metric(case: Case, kind: FailureKind) -> str:
    if kind is FailureKind.HAZARD:
        return "hazards"
    if kind is FailureKind.BASELINE:
        return "oracle_error"
    return kind_of(case.task, activation=case.activation).metric


def _worst(group: Group, table: Table) -> CellState | None:
    """The worst bad cell of all the cases that show the finding, the shrunk one included."""
    states = [t.worst for t in (table, *(f.table for f in group.failures))]
    found = [state for state in states if state is not None]
    return max(found, key=lambda s: -1.0 if s.value is None else s.value, default=None)


def _caveats(
    shrunk: Shrunk, settings: Mapping[str, str], kind: FailureKind, budget: Budget
) -> tuple[str, ...]:
    """What was not done, so that nobody takes its absence for a fact."""
    found = []
    if not budget.calls:
        found.append("no budget to run it again; reported as recorded")
    elif not shrunk.reproduced:
        found.append("did not fail the same way when run again; reported as recorded")
    elif not shrunk.complete:
        found.append("shrinking stopped at its budget; a smaller case may exist")
    if is_racy(settings, kind):
        found.append(f"depends on real concurrency: each cell was given {RACY_ATTEMPTS} tries")
    return tuple(found)
