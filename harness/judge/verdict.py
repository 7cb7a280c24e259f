"""The verdict on two executions of one case. Nothing passes without witness, power and elements."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.axes import differing, tier_between
from harness.judge import attest, checks
from harness.judge.bounds import Bounds
from harness.judge.closeness import bounded, exact
from harness.judge.metrics import num_non_finite
from harness.judge.output import Outputs
from harness.judge.own_checks import own
from harness.judge.subject import Execution, Subject
from harness.record import Comparison, Measurement, Outcome, PairRecord, PowerRecord, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An outcome and what it rests on."""

    outcome: Outcome
    reason: str = ""
    num_compared: int = 0
    measurements: tuple[Measurement, ...] = ()
    warnings: tuple[str, ...] = ()
    worst_prompt: int | None = None


def pair_id(checkpoint: str, comparison: Comparison, a: str, b: str) -> str:
    """Stable id of a comparison of two executions of one checkpoint, alone of its name in a run.

    Families that share a vocabulary share cases, and so the ids of their executions.
    """
    return hashlib.sha256(f"{checkpoint}|{comparison}|{a}|{b}".encode()).hexdigest()[:12]


def judge_pair(
    subject: Subject,
    a: Execution,
    b: Execution,
    *,
    comparison: Comparison,
    oracle: Outputs | None,
    power: PowerRecord | None,
    bounds: Bounds,
    axes: Sequence[str] | None = None,
    settings: Collection[str] = (),
    inapplicable: str | None = None,
) -> PairRecord:
    """Judge side B against side A.

    Args:
        subject: The case on its checkpoint.
        a: The reference side.
        b: The other side.
        comparison: Which two runs these are.
        oracle: float64 outputs, one per prompt; the reordered and kernel tiers need them.
        power: The case's proof of power; without one nothing passes.
        bounds: The run's bounds; hold every baseline error of the checkpoint already.
        axes: Axes declared to differ; default: those in which the two cells differ.
        settings: Names of the settings declared to differ (executor, stream_policy, inputs).
        inapplicable: What `harness.axes.inapplicable` said of the pair before it ran.
    """
    declared = differing(a.cell, b.cell) if axes is None else tuple(axes)
    tier = tier_between(declared, a.witness, b.witness)
    verdict = (
        crashed(a, b)
        or _inapplicable(inapplicable)
        or _fair(subject, a, b, comparison, declared, settings, tier)
        or sound(subject, a, b)
        or compared(subject, tier, a, b, oracle, power, bounds)
    )
    return PairRecord(
        pair_id=pair_id(subject.checkpoint, comparison, a.execution_id, b.execution_id),
        case_id=subject.case_id,
        checkpoint=subject.checkpoint,
        task=subject.task,
        comparison=comparison,
        axes=declared,
        a=a.execution_id,
        b=b.execution_id,
        cell_a=dict(a.cell),
        cell_b=dict(b.cell),
        settings=dict(b.settings),
        tier=tier,
        outcome=verdict.outcome,
        reason=verdict.reason,
        num_compared=verdict.num_compared,
        measurements=verdict.measurements,
        warnings=verdict.warnings,
        worst_prompt=verdict.worst_prompt,
    )


def crashed(a: Execution, b: Execution) -> Verdict | None:
    """ERROR when a side did not end in outputs."""
    for side, run in (("A", a), ("B", b)):
        if run.error:
            return Verdict(
                outcome=Outcome.ERROR, reason=f"side {side} ({run.execution_id}): {run.error}"
            )
    return None


def _inapplicable(reason: str | None) -> Verdict | None:
    return None if reason is None else Verdict(outcome=Outcome.INAPPLICABLE, reason=reason)


def _fair(
    subject: Subject,
    a: Execution,
    b: Execution,
    comparison: Comparison,
    axes: Sequence[str],
    settings: Collection[str],
    tier: Tier,
) -> Verdict | None:
    if a.execution_id == b.execution_id:
        return Verdict(outcome=Outcome.VACUOUS, reason="both sides are the same execution")
    reason = attest.misuse(a, b, comparison, axes, settings)
    if reason is not None:
        return Verdict(outcome=Outcome.ERROR, reason=reason)
    reason = attest.unwitnessed(a, b, axes)
    if reason is not None:
        return Verdict(outcome=Outcome.VACUOUS, reason=reason)
    reason = attest.unattested(subject, a, b, axes, tier)
    if reason is not None:
        return Verdict(outcome=Outcome.ERROR, reason=reason)
    return None


def sound(subject: Subject, a: Execution, b: Execution) -> Verdict | None:
    """Everything a pair can fail by before any two numbers are compared."""
    if not any(output.size for run in (a, b) for output in run.outputs):
        return Verdict(outcome=Outcome.VACUOUS, reason="nothing was compared: no output element")
    reason = (
        checks.structure(subject, a.outputs, b.outputs)
        or checks.finite("A", a.outputs)
        or checks.finite("B", b.outputs)
    )
    if reason is None:
        return None
    return Verdict(outcome=Outcome.FAIL, reason=_joined(reason, attest.hazards(a, b)))


def _joined(*reasons: str | None) -> str:
    return "; ".join(filter(None, reasons))


def oracle_mismatch(outputs: Outputs, oracle: Outputs) -> str | None:
    """Why oracle outputs cannot be held against these."""
    mine, truth = [o.shape for o in outputs], [o.shape for o in oracle]
    if mine != truth:
        return f"the oracle returned shapes {truth}, the run {mine}"
    broken = [index for index, output in enumerate(oracle) if num_non_finite(output)]
    return f"the oracle's outputs of prompts {broken} are not finite" if broken else None


def compared(
    subject: Subject,
    tier: Tier,
    run_a: Execution,
    run_b: Execution,
    oracle: Outputs | None,
    power: PowerRecord | None,
    bounds: Bounds,
) -> Verdict:
    """The numbers, and last the happens-before check: a race is a FAIL whatever the numbers."""
    a, b = run_a.outputs, run_b.outputs
    if oracle is not None:
        mismatch = oracle_mismatch(a, oracle)
        if mismatch is not None:
            return Verdict(outcome=Outcome.ERROR, reason=mismatch)
    if tier is Tier.EXACT:
        closeness = exact(subject, a, b, oracle)
    elif oracle is None:
        return Verdict(
            outcome=Outcome.ERROR, reason=f"the {tier} tier needs float64 outputs and got none"
        )
    else:
        closeness = bounded(subject, tier, a, b, oracle, bounds)
    failures = [closeness.failure, checks.exchanged(subject, a, b) if closeness.failure else ""]
    for side, outputs in (("A", a), ("B", b)):
        failures.append(checks.norm(subject, side, outputs, oracle) or "")
        failures.append(checks.distinct(subject, side, outputs, oracle, bounds) or "")
        failures.append(own(subject, side, outputs, oracle))
    reason = _joined(*failures, attest.hazards(run_a, run_b))
    outcome = Outcome.FAIL if reason else Outcome.PASS
    if outcome is Outcome.PASS:
        reason = powerless(power)
        outcome = Outcome.VACUOUS if reason else Outcome.PASS
    return Verdict(
        outcome=outcome,
        reason=reason,
        num_compared=sum(output.size for output in b),
        measurements=closeness.measurements,
        warnings=closeness.warnings,
        worst_prompt=closeness.worst_prompt,
    )


def powerless(power: PowerRecord | None) -> str:
    """Why agreement would prove nothing; empty when the case has power."""
    if power is None:
        return "no proof of power: nobody showed that this output moves when its input does"
    if power.blind:
        still = [m for m in power.movements if m.bound is not None and not m.value > m.bound]
        detail = "; ".join(f"{m.metric} moved {m.value:.3g}, needs {m.bound:.3g}" for m in still)
        return f"the case is blind: {detail or 'no perturbation was tried'}"
    return ""
