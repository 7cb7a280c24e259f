"""Judging what was executed, from the records alone: the same code re-judges an old run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.axes import Cell, baseline, differing, edges, inapplicable
from harness.axes.overlap import cannot_overlap
from harness.campaign.outputs import OutputStore
from harness.campaign.perturb import LONE, PERTURBATIONS, read
from harness.case import Case, case_from_json
from harness.judge.against_oracle import oracle_pair
from harness.judge.bounds import Bounds
from harness.judge.drift import DriftBudget
from harness.judge.output import Output
from harness.judge.power import Perturbation, power
from harness.judge.related import judge_relation
from harness.judge.subject import Execution, Subject
from harness.judge.verdict import judge_pair
from harness.record import (
    CaseRecord,
    Comparison,
    DriftRecord,
    ExecutionRecord,
    Outcome,
    PairRecord,
    PowerRecord,
    Record,
    RelationRecord,
)
from harness.relations import RELATIONS


@dataclass(slots=True)
class Executed:
    """Everything recorded about one case on one checkpoint."""

    case: CaseRecord
    executions: list[ExecutionRecord] = field(default_factory=list)
    relations: list[RelationRecord] = field(default_factory=list)


def executed(records: Sequence[Record]) -> dict[str, list[Executed]]:
    """Checkpoint -> its cases with their executions, in order."""
    found: dict[str, dict[str, Executed]] = {}
    for record in records:
        if isinstance(record, CaseRecord):
            found.setdefault(record.checkpoint, {})[record.case_id] = Executed(record)
        elif isinstance(record, ExecutionRecord):
            cases = found.get(record.checkpoint, {})
            if record.case_id in cases:
                cases[record.case_id].executions.append(record)
        elif isinstance(record, RelationRecord) and record.case_id in found[record.checkpoint]:
            found[record.checkpoint][record.case_id].relations.append(record)
    return {name: list(cases.values()) for name, cases in found.items()}


Verdicts = PowerRecord | PairRecord | DriftRecord


class CheckpointJudge:
    """Owns: the bounds of one checkpoint in one run. Observe every case, then judge them."""

    def __init__(
        self,
        *,
        dtype: str,
        causal: bool,
        store: OutputStore,
        chunk: int | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """`chunk`: token budget of a chunked cell, so that a longer prompt is known to be split."""
        self._chunk = chunk
        self._dtype, self._causal, self._store = dtype, causal, store
        self._bounds = bounds or Bounds()

    def judge(self, cases: Sequence[Executed]) -> Iterator[Verdicts]:
        """Power and pair records of every case; the bounds rest on all of them.

        On all whose baseline is right, that is: a wrong one is no measure of rounding, and would
        excuse everything of its length.
        """
        for case in cases:
            view = CaseView(case, self._dtype, self._store)
            reference = view.reference
            if view.oracle is None or reference is None or reference.error:
                continue
            pair = oracle_pair(
                view.subject,
                reference,
                view.oracle,
                power=None,
                bounds=self._bounds,
                twin=view.twin,
            )
            if pair.outcome is not Outcome.FAIL:
                self._bounds.errors.observe(view.subject, reference.outputs, view.oracle)
        drift = DriftBudget(self._bounds)
        for case in cases:
            yield from self._judge_case(CaseView(case, self._dtype, self._store), drift)
        yield from drift.records()

    def _judge_case(self, view: CaseView, drift: DriftBudget) -> Iterator[PowerRecord | PairRecord]:
        reference = view.reference
        if reference is None:
            return  # killed before the baseline ran
        proof = self._power(view, reference)
        if proof is not None:
            yield proof
        if view.oracle is not None:
            yield oracle_pair(
                view.subject,
                reference,
                view.oracle,
                power=proof,
                bounds=self._bounds,
                twin=view.twin,
            )
        elif view.oracle_error:
            pair = oracle_pair(view.subject, reference, (), power=proof, bounds=self._bounds)
            reason = pair.reason if reference.error else f"the oracle: {view.oracle_error}"
            yield replace(pair, outcome=Outcome.ERROR, reason=reason)
        for comparison, a, b, settings in view.pairs():
            pair = judge_pair(
                view.subject,
                a,
                b,
                comparison=comparison,
                oracle=view.oracle,
                power=proof,
                bounds=self._bounds,
                settings=settings,
                inapplicable=_unreachable(view.case.lengths, a, b, self._chunk),
            )
            yield pair
            if comparison is Comparison.EDGE and pair.outcome is Outcome.PASS:
                drift.add(view.subject, pair.axes[0], pair.tier, a.outputs, b.outputs)
        yield from self._related(view, proof)

    def _related(self, view: CaseView, proof: PowerRecord | None) -> Iterator[PairRecord]:
        for record in view.relations:
            a, b = view.by_id.get(record.of), view.by_id.get(record.follow_up)
            if a is None or b is None:
                continue  # killed in between
            relation = RELATIONS[record.relation]
            answer = view.by_id.get(record.truth)
            yield judge_relation(
                view.subject,
                a,
                b,
                record,
                oracle=view.oracle,
                truth=None if answer is None or answer.error else answer.outputs,
                power=proof,
                bounds=self._bounds,
                inapplicable=relation.reach(a.plan, record.matches),
                unwitnessed=relation.witness(a.plan, b.plan, record.matches),
            )

    def _power(self, view: CaseView, reference: Execution) -> PowerRecord | None:
        if reference.error or len(reference.outputs) != len(view.case.lengths):
            return None
        perturbations = []
        for name in (*PERTURBATIONS, LONE):
            run = view.perturbed.get(name)
            if run is None or run.error:
                continue
            chosen = read(run.settings["changed"])
            if len(run.outputs) != len(chosen):
                continue
            for (prompt, token), output in zip(chosen, run.outputs, strict=True):
                perturbations.append(
                    Perturbation(name=name, prompt=prompt, token=token, output=output)
                )
        return power(
            view.subject, reference.outputs, perturbations, self._bounds, causal=self._causal
        )


def _unreachable(
    lengths: Sequence[int], a: Execution, b: Execution, chunk: int | None
) -> str | None:
    """Why the pair's axes cannot act, known from case, plan and settings before it ran."""
    # The case alone says that a prompt must be split: a plan that does not is no excuse.
    surely = ("chunk",) if chunk is not None and max(lengths) > chunk else ()
    reason = inapplicable(a.cell, b.cell, lengths, a.plan or (), b.plan or (), surely=surely)
    if reason is None and "async" in differing(a.cell, b.cell):
        reason = cannot_overlap(a.cell, a.settings) or cannot_overlap(b.cell, b.settings)
    return reason


class CaseView:
    """Owns nothing; one case's executions by role, their outputs loaded."""

    def __init__(self, executed_case: Executed, dtype: str, store: OutputStore) -> None:
        self.case = executed_case.case
        case: Case = case_from_json(self.case.case)
        self.subject = Subject.of(
            case, checkpoint=self.case.checkpoint, dtype=dtype, lengths=self.case.lengths
        )
        self.oracle: tuple[Output, ...] | None = None
        self.oracle_error = ""
        self.twin: tuple[Output, ...] | None = None
        self.perturbed: dict[str, Execution] = {}
        self.inline: dict[Cell, Execution] = {}
        self.apart: dict[Cell, Execution] = {}
        self.relations = executed_case.relations
        self.by_id: dict[str, Execution] = {}
        for record in executed_case.executions:
            outputs = store.read(record.outputs) if record.outputs else ()
            run = execution_of(record, outputs)
            self.by_id[run.execution_id] = run
            if "relation" in record.settings:
                continue
            if record.settings.get("system") == "twin":
                self.twin = None if record.error else outputs
                continue
            if record.settings.get("system") == "oracle":
                self.oracle = None if record.error else outputs
                self.oracle_error = record.error
                continue
            if "perturbed" in record.settings:
                self.perturbed[record.settings["perturbed"]] = run
            elif record.settings.get("executor") == "processes":
                self.apart[Cell.of(record.cell)] = run
            else:
                self.inline[Cell.of(record.cell)] = run

    @property
    def reference(self) -> Execution | None:
        return self.inline.get(baseline())

    def pairs(self) -> Iterator[tuple[Comparison, Execution, Execution, tuple[str, ...]]]:
        """Every comparison of the case: baseline to cell, edges, inline to processes."""
        start = baseline()
        reference = self.inline[start]
        for cell, run in self.inline.items():
            if cell != start:
                yield Comparison.BASELINE, reference, run, ()
        for edge in edges(self.inline):
            yield Comparison.EDGE, self.inline[edge.a], self.inline[edge.b], ()
        for cell, run in self.apart.items():
            if cell in self.inline:
                yield Comparison.SETTING, self.inline[cell], run, ("executor",)


def execution_of(record: ExecutionRecord, outputs: tuple[Output, ...]) -> Execution:
    """A record as the judge takes it."""
    witness: Mapping[str, object] = record.witness
    return Execution(
        execution_id=record.execution_id,
        cell=dict(record.cell),
        settings=dict(record.settings),
        outputs=outputs,
        witness=witness,
        plan=record.plan or (),
        error=record.error.partition("\n")[0],  # a rank's traceback stays in its own record
    )
