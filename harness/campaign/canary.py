"""Two deployments on a user's own traffic: how far apart they are, and whether that is too far.

There may be no float64 answer to traffic, so the measure is taken from the baseline itself: it runs
everything a second time, in the opposite order, and how far it is from itself is what no candidate
is blamed for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.axes import ALL_AXES, differing, inline
from harness.campaign.deployment import Deployment
from harness.campaign.outputs import OutputStore
from harness.campaign.recorder import execution_id
from harness.case import Case
from harness.judge import checks
from harness.judge.metrics import error, one_minus_cosine
from harness.judge.output import Output, OutputKind
from harness.judge.subject import Subject
from harness.judge.tolerance import TABLE, power_factor
from harness.judge.verdict import pair_id
from harness.record import (
    CaseRecord,
    Comparison,
    ExecutionRecord,
    Measurement,
    Outcome,
    PairRecord,
    Record,
    Tier,
)
from harness.systems.base import Encoded, Refused, System, SystemRun

FLOOR_FACTOR = 3.0
"""How many times the baseline's distance from itself a candidate may be away, as for every null."""
AGAIN = "baseline, again"


@dataclass(slots=True, kw_only=True)
class Side:
    """Owns: what one deployment answered, case by case."""

    name: str
    runs: dict[str, SystemRun]
    errors: dict[str, str]
    records: dict[str, ExecutionRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A comparison. Owns nothing; each side's system is closed when it has answered."""

    baseline: Deployment
    candidate: Deployment
    store: OutputStore
    timeout_s: float = 300.0
    within: float | None = None
    """Most a candidate may be away; None: three times the baseline's distance from itself."""
    threshold: float | None = None
    """A score a user acts on: rows that land on its other side are counted."""

    def run(self, cases: Sequence[Case]) -> Iterator[Record]:
        """Everything executed, then everything judged."""
        lengths: dict[str, tuple[int, ...]] = {}
        first = self._ask(self.baseline, "baseline", cases, lengths)
        other = self._ask(self.candidate, "candidate", cases, {})
        for case in cases:
            yield CaseRecord(
                case_id=case.case_id,
                checkpoint=self.baseline.model,
                task=case.task,
                case=case.to_json(),
                lengths=lengths.get(case.case_id, (0,) * len(case.prompts)),
                boundaries=(),
            )
            for side in (first["baseline"], first[AGAIN], other["candidate"]):
                yield side.records[case.case_id]
        yield from self._judged(cases, lengths, first, other["candidate"])

    def _ask(
        self,
        deployment: Deployment,
        name: str,
        cases: Sequence[Case],
        lengths: dict[str, tuple[int, ...]],
    ) -> dict[str, Side]:
        """Every case once, task by task; the baseline a second time with its prompts turned."""
        names = (name, AGAIN) if name == "baseline" else (name,)
        sides = {n: Side(name=n, runs={}, errors={}, records={}) for n in names}
        system = deployment.make(timeout_s=self.timeout_s)
        try:
            for case in sorted(cases, key=lambda case: case.task):
                try:
                    prompts = system.encode(case)
                    lengths[case.case_id] = tuple(len(p.token_ids) for p in prompts)
                except Exception as failure:  # noqa: BLE001 - whatever it raises is its answer
                    for side in sides.values():
                        self._note(side, deployment, case, None, failure, 0.0)
                    continue
                for side in sides.values():
                    self._one(system, deployment, side, case, prompts)
        finally:
            system.close()
        return sides

    def _one(
        self,
        system: System,
        deployment: Deployment,
        side: Side,
        case: Case,
        prompts: Sequence[Encoded],
    ) -> None:
        began, run, failure = time.perf_counter(), None, None
        settings = inline(system.settings[0])
        turned = side.name == AGAIN
        asked = replace(case, prompts=case.prompts[::-1]) if turned else case
        try:
            session = system.open(deployment.cell, settings)
            run = session.run(asked, prompts[::-1] if turned else prompts)
            if turned:
                run = replace(run, outputs=run.outputs[::-1])
        except Exception as error_:  # noqa: BLE001 - whatever it raises is its answer
            failure = error_
            if not isinstance(error_, Refused):
                system.discard(deployment.cell, settings)
        self._note(side, deployment, case, run, failure, time.perf_counter() - began)

    def _note(
        self,
        side: Side,
        deployment: Deployment,
        case: Case,
        run: SystemRun | None,
        failure: Exception | None,
        seconds: float,
    ) -> None:
        told = "" if failure is None else f"{type(failure).__name__}: {failure}"
        name, digest = ("", "") if run is None else self.store.write(run.outputs)
        settings = {"deployment": side.name}
        if run is not None:
            side.runs[case.case_id] = run
        side.errors[case.case_id] = told
        side.records[case.case_id] = ExecutionRecord(
            execution_id=execution_id(deployment.model, case.case_id, deployment.cell, settings),
            case_id=case.case_id,
            checkpoint=deployment.model,
            cell=dict(deployment.cell),
            settings=settings,
            plan=None if run is None else run.plan,
            plan_digest="" if run is None else str(run.witness.get("plan_digest", "")),
            witness={} if run is None else run.witness,
            outputs=name,
            output_digest=digest,
            error=told,
            seconds=seconds,
        )

    def _judged(
        self,
        cases: Sequence[Case],
        lengths: Mapping[str, tuple[int, ...]],
        first: Mapping[str, Side],
        other: Side,
    ) -> Iterator[PairRecord]:
        subjects = {
            case.case_id: Subject.of(
                case,
                checkpoint=self.baseline.model,
                dtype=self.candidate.dtype,
                lengths=lengths.get(case.case_id, (0,) * len(case.prompts)),
            )
            for case in cases
        }
        own = self._own_distance(subjects, first)
        for case in cases:
            yield self._pair(subjects, subjects[case.case_id], first["baseline"], other, own)

    def _own_distance(
        self, subjects: Mapping[str, Subject], first: Mapping[str, Side]
    ) -> dict[OutputKind, float]:
        """Largest distance of the baseline from itself, by kind of output."""
        found: dict[OutputKind, float] = {}
        for case_id, subject in subjects.items():
            a, again = (first[name].runs.get(case_id) for name in ("baseline", AGAIN))
            if a is None or again is None:
                continue
            if checks.structure(subject, a.outputs, again.outputs):
                continue
            errors = [
                error(subject.kind, y, x) for x, y in zip(a.outputs, again.outputs, strict=True)
            ]
            found[subject.kind] = max(found.get(subject.kind, 0.0), *errors)
        return found

    def _pair(
        self,
        subjects: Mapping[str, Subject],
        subject: Subject,
        first: Side,
        other: Side,
        own: Mapping[OutputKind, float],
    ) -> PairRecord:
        case_id = subject.case_id
        a, b = first.records[case_id], other.records[case_id]
        limit, why = self._limit(subject, own)
        outcome, reason, worst = Outcome.PASS, "", None
        measured: tuple[Measurement, ...] = ()
        compared = 0
        failed = next(
            (f"{s.name}: {s.errors[case_id]}" for s in (first, other) if s.errors[case_id]), None
        )
        if failed is not None:
            outcome, reason = Outcome.ERROR, failed
        else:
            x, y = first.runs[case_id].outputs, other.runs[case_id].outputs
            broken = (
                checks.structure(subject, x, y)
                or checks.finite(first.name, x)
                or checks.finite(other.name, y)
            )
            idle = self._idle(first.runs[case_id], other.runs[case_id])
            if broken is not None:
                outcome, reason = Outcome.FAIL, broken
            else:
                errors = [error(subject.kind, q, p) for p, q in zip(x, y, strict=True)]
                worst = int(np.argmax(errors))
                compared = sum(output.size for output in y)
                measured = self._measured(subject, x, y, errors, limit, why, own)
                if not errors[worst] <= limit:
                    outcome = Outcome.FAIL
                    metric, far = subject.kind.metric, errors[worst]
                    reason = f"prompt {worst}: {metric} {far:.3g}, bound {limit:.3g}"
                elif idle is not None:
                    outcome, reason = Outcome.VACUOUS, idle
                elif not self._powerful(subjects, subject, first, limit):
                    outcome = Outcome.VACUOUS
                    reason = (
                        "no other prompt of the traffic moves this output: agreement says nothing"
                    )
        return PairRecord(
            pair_id=pair_id(subject.checkpoint, Comparison.SETTING, a.execution_id, b.execution_id),
            case_id=case_id,
            checkpoint=subject.checkpoint,
            task=subject.task,
            comparison=Comparison.SETTING,
            axes=differing(self.baseline.cell, self.candidate.cell),
            a=a.execution_id,
            b=b.execution_id,
            cell_a=dict(a.cell),
            cell_b=dict(b.cell),
            settings=dict(b.settings),
            tier=Tier.REORDERED,
            outcome=outcome,
            reason=reason,
            num_compared=compared,
            measurements=measured,
            worst_prompt=worst,
        )

    def _limit(self, subject: Subject, own: Mapping[OutputKind, float]) -> tuple[float, str]:
        if self.within is not None:
            return self.within, "as the user said (--within)"
        floors = [
            TABLE[Tier.REORDERED, subject.dtype, subject.kind, subject.key(i).bucket].floor
            for i in range(len(subject.lengths))
        ]
        mine = own.get(subject.kind, 0.0)
        return max(FLOOR_FACTOR * mine, *floors), (
            f"max({max(floors):.3g}, {FLOOR_FACTOR:g} x {mine:.3g}, the baseline's largest "
            "distance from itself when asked again in the opposite order)"
        )

    def _idle(self, a: SystemRun, b: SystemRun) -> str | None:
        """Why an axis in which the two are meant to differ did not act."""
        for name in differing(self.baseline.cell, self.candidate.cell):
            for side, run, cell in (
                ("baseline", a, self.baseline.cell),
                ("candidate", b, self.candidate.cell),
            ):
                reason = ALL_AXES[name].witnessed(cell, run.witness)
                if reason is not None:
                    return f"{side}: {reason}"
        return None

    def _powerful(
        self, subjects: Mapping[str, Subject], subject: Subject, first: Side, limit: float
    ) -> bool:
        """Whether the answer to some other prompt is plainly another one."""
        floor = TABLE[Tier.REORDERED, subject.dtype, subject.kind, subject.key(0).bucket].floor
        needed = max(power_factor(subject.dtype) * floor, limit)
        mine = first.runs[subject.case_id].outputs
        others: list[Output] = [*mine]
        for case_id, run in first.runs.items():
            if subjects[case_id].kind is subject.kind:
                others += run.outputs
        if subject.kind.token_level:  # rows of other tokens: one prompt is enough
            rows = [row for output in mine for row in output.rows]
            return any(
                error(OutputKind.EMBEDDING, Output.of(r), Output.of(rows[0])) > needed
                for r in rows[1:]
            )
        return all(
            any(o.shape == m.shape and error(subject.kind, o, m) > needed for o in others)
            for m in mine
        )

    def _measured(
        self,
        subject: Subject,
        x: Sequence[Output],
        y: Sequence[Output],
        errors: Sequence[float],
        limit: float,
        why: str,
        own: Mapping[OutputKind, float],
    ) -> tuple[Measurement, ...]:
        found = [
            Measurement(metric=subject.kind.metric, value=max(errors), bound=limit, why=why),
            Measurement(
                metric="median_distance",
                value=float(np.median(errors)),
                unit=subject.kind.metric,
            ),
            Measurement(
                metric="own_distance", value=own.get(subject.kind, 0.0), unit=subject.kind.metric
            ),
        ]
        if subject.kind.vector:
            cosines = [
                float(one_minus_cosine(q.rows, p.rows).max()) for p, q in zip(x, y, strict=True)
            ]
            found.append(Measurement(metric="one_minus_cosine", value=max(cosines)))
        elif self.threshold is not None:
            crossed = sum(
                int(((p.float64 >= self.threshold) != (q.float64 >= self.threshold)).sum())
                for p, q in zip(x, y, strict=True)
            )
            found.append(
                Measurement(metric="crossed_threshold", value=float(crossed), unit="scores")
            )
        return tuple(found)
