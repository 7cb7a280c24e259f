"""The baseline against float64: the pair that keeps a wrong baseline from becoming the measure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.judge import checks
from harness.judge.bounds import Bounds
from harness.judge.metrics import error, max_abs, norm_ratio, one_minus_cosine
from harness.judge.output import Output, Outputs
from harness.judge.subject import Execution, Subject
from harness.judge.tolerance import TWIN_LIFT
from harness.judge.verdict import Verdict, oracle_mismatch, pair_id, powerless
from harness.record import Comparison, Measurement, Outcome, PairRecord, PowerRecord, Tier

ORACLE = "oracle"
"""Execution id of the oracle's side."""


def oracle_pair(
    subject: Subject,
    baseline: Execution,
    oracle: Outputs,
    *,
    power: PowerRecord | None,
    bounds: Bounds,
    twin: Outputs | None = None,
) -> PairRecord:
    """Judge the baseline cell (side B) against float64 (side A).

    `twin` are the outputs of a trusted implementation at the baseline's dtype: the baseline FAILs
    when it is further from float64 than its cap (`Rules.cap`) and than twice the twin.
    """
    verdict = _judge(subject, baseline, oracle, power, bounds, twin)
    return PairRecord(
        pair_id=pair_id(subject.checkpoint, Comparison.ORACLE, ORACLE, baseline.execution_id),
        case_id=subject.case_id,
        checkpoint=subject.checkpoint,
        task=subject.task,
        comparison=Comparison.ORACLE,
        axes=(),
        a=ORACLE,
        b=baseline.execution_id,
        cell_a={},
        cell_b=dict(baseline.cell),
        settings=dict(baseline.settings),
        tier=Tier.KERNEL,
        outcome=verdict.outcome,
        reason=verdict.reason,
        num_compared=verdict.num_compared,
        measurements=verdict.measurements,
        warnings=verdict.warnings,
        worst_prompt=verdict.worst_prompt,
    )


def _judge(
    subject: Subject,
    baseline: Execution,
    oracle: Outputs,
    power: PowerRecord | None,
    bounds: Bounds,
    twin: Outputs | None,
) -> Verdict:
    mine = baseline.outputs
    if baseline.error:
        return Verdict(outcome=Outcome.ERROR, reason=f"the baseline: {baseline.error}")
    if not any(output.size for output in mine):
        return Verdict(outcome=Outcome.VACUOUS, reason="nothing was compared: no output element")
    broken = checks.structure(subject, mine, mine) or checks.finite("B", mine)
    if broken is not None:
        return Verdict(outcome=Outcome.FAIL, reason=broken)
    mismatch = oracle_mismatch(mine, oracle)
    if mismatch is not None:
        return Verdict(outcome=Outcome.ERROR, reason=mismatch)
    kind = subject.kind
    errors = [error(kind, x, o) for x, o in zip(mine, oracle, strict=True)]
    limits = [_limit(subject, index, oracle, twin, bounds) for index in range(len(mine))]
    worst = max(range(len(errors)), key=lambda i: errors[i] / limits[i][0])
    limit, why = limits[worst]
    measurements = [Measurement(metric="oracle_error", value=errors[worst], bound=limit, why=why)]
    measurements += _details(mine[worst], oracle[worst], vector=kind.vector)
    failures = [
        f"prompt {worst}: {kind.metric} {errors[worst]:.3g} against float64, bound {limit:.3g}"
        if not errors[worst] <= limit
        else "",
        checks.norm(subject, "B", mine, oracle) or "",
        checks.distinct(subject, "B", mine, oracle, bounds) or "",
    ]
    reason = "; ".join(filter(None, failures))
    outcome = Outcome.FAIL if reason else Outcome.PASS
    if outcome is Outcome.PASS:
        reason = powerless(power)
        outcome = Outcome.VACUOUS if reason else Outcome.PASS
    return Verdict(
        outcome=outcome,
        reason=reason,
        num_compared=sum(output.size for output in mine),
        measurements=tuple(measurements),
        worst_prompt=worst,
    )


def _limit(
    subject: Subject, index: int, oracle: Outputs, twin: Outputs | None, bounds: Bounds
) -> tuple[float, str]:
    cap = bounds.rules.cap(subject.dtype, subject.kind)
    if twin is None:
        return cap.floor, cap.why
    # Some rows are ill-conditioned whoever computes them, and on others a twin is merely lucky, so
    # a baseline is wrong only when it is beyond both.
    trusted = error(subject.kind, twin[index], oracle[index])
    lifted = min(cap.k * trusted, TWIN_LIFT * cap.floor)
    return max(cap.floor, lifted), f"{cap.why} (twin {trusted:.3g})"


def least_cap(
    subject: Subject, baseline: Outputs, oracle: Outputs, twin: Outputs | None, bounds: Bounds
) -> float:
    """The lowest cap under which no prompt of the baseline is too far from float64."""
    k = bounds.rules.cap(subject.dtype, subject.kind).k
    least = 0.0
    for index, (mine, truth) in enumerate(zip(baseline, oracle, strict=True)):
        own = error(subject.kind, mine, truth)
        if twin is not None and own <= k * error(subject.kind, twin[index], truth):
            own /= TWIN_LIFT
        least = max(least, own)
    return least


def _details(mine: Output, oracle: Output, *, vector: bool) -> Sequence[Measurement]:
    found = [Measurement(metric="max_abs", value=float(max_abs(mine.rows, oracle.rows).max()))]
    if vector:
        cosine = one_minus_cosine(mine.rows, oracle.rows)
        found.append(Measurement(metric="one_minus_cosine", value=float(cosine.max())))
        ratio = norm_ratio(mine.rows, oracle.rows)
        found.append(Measurement(metric="norm_ratio", value=float(ratio.max())))
    return found
