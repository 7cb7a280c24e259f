"""The entry: every finding of a judged checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.attribution.gap import RunLimits
from harness.attribution.investigate import Investigator, masks_of
from harness.attribution.laboratory import Laboratory, Oracle
from harness.attribution.recorded import Group, grouped
from harness.attribution.signature import (
    ANY_POLICY,
    OWN_POLICY,
    FailureKind,
    Signature,
    is_racy,
)
from harness.campaign.judging import Executed
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import SETTINGS, CheckpointPlan
from harness.judge.bounds import Bounds
from harness.record import FindingRecord, PairRecord
from harness.search import Budget
from harness.systems.base import System


def find(
    cases: Sequence[Executed],
    pairs: Sequence[PairRecord],
    *,
    system: System,
    plan: CheckpointPlan,
    store: OutputStore,
    bounds: Bounds,
    run_id: str,
    plants: Sequence[str] = (),
    oracle: Oracle | None = None,
    policies: Sequence[Mapping[str, str]] = SETTINGS,
    budget: Budget | None = None,
) -> Iterator[FindingRecord]:
    """One finding for each signature among the failing pairs, worst-understood last.

    Args:
        cases: What was executed on one checkpoint.
        pairs: Every judged pair of those cases.
        system: The system under test on that checkpoint, with the run's plants already in it.
        plan: The checkpoint's sizes.
        store: Where the run's outputs are.
        bounds: The run's bounds, every baseline error observed.
        run_id: Named in the command that reproduces a finding.
        plants: Plug-ins (`module:callable`) that the scripts apply again.
        oracle: float64 answers; only a baseline that is itself wrong needs them to be shrunk.
        policies: Stream policies that every shrunk case is tried under.
        budget: Engine calls and seconds for all findings together, in equal shares.
    """
    limits = RunLimits(bounds)
    groups = grouped(cases, pairs, dtype=system.dtype, store=store, limits=limits)
    if not groups:
        return
    spend = budget or Budget(calls=4000, seconds=120.0)
    investigator = Investigator(
        laboratory=Laboratory(
            system=system, checkpoint=plan.name, limits=limits, budget=spend, oracle=oracle
        ),
        plan=plan,
        policies=policies,
        run_id=run_id,
        plants=plants,
    )
    found: dict[str, FindingRecord] = {}
    waiting = sorted(groups, key=_order)
    while waiting:
        group = waiting.pop(0)
        known = found.get(replace(group.signature, policy=ANY_POLICY).finding_id)
        known = known or _seen_by_chance(group, found.values())
        if known is None:
            if group.signature.kind is FailureKind.BASELINE and oracle is None:
                share = Budget(calls=0, seconds=0.0)
            else:
                share = spend.share(len(waiting) + 1)
            finding = investigator.finding(group, share)
            spend.absorb(share)
            known = found.get(finding.finding_id)
        if known is None:
            found[finding.finding_id] = finding
        else:
            found[known.finding_id] = merged(known, group)
    yield from found.values()


def merged(finding: FindingRecord, group: Group) -> FindingRecord:
    """The finding with another group's pairs, what hides it there, and its worst value."""
    states = [state for f in group.failures if (state := f.table.worst) is not None]
    worst, bound = finding.worst, finding.bound
    for state in states:
        if state.value is not None and state.value > worst:
            worst, bound = state.value, state.limit
    more = [pair.pair_id for failure in group.failures for pair in failure.pairs]
    masked = masks_of(group).union(finding.masked_by)
    return replace(
        finding,
        pairs=tuple(dict.fromkeys((*finding.pairs, *more))),
        masked_by=tuple(sorted(masked)),
        worst=worst,
        bound=bound,
    )


def _seen_by_chance(group: Group, found: Iterable[FindingRecord]) -> FindingRecord | None:
    """A finding made under a policy that replays, if it accounts for all that failed by luck.

    Which cells fail under real threads varies from run to run, so their minimal sets are no
    signature: where every one of them holds a set that is known to fail, nothing new was seen.
    """
    signature = group.signature
    if not all(is_racy(failure.settings, signature.kind) for failure in group.failures):
        return None
    for finding in found:
        other = Signature.parse(finding.signature)
        same = (other.level, other.kind) == (signature.level, signature.kind)
        if same and all(any(mine <= s for mine in other.sets) for s in signature.sets):
            return finding
    return None


def _order(group: Group) -> tuple[bool, int, int, str]:
    """Differences first, then fewest switches; groups left to luck last, they may be known then."""
    signature: Signature = group.signature
    racy = signature.policy in ("threaded", OWN_POLICY)
    switches = sum(len(values) for values in signature.sets)
    kinds = list(FailureKind)
    return racy, kinds.index(signature.kind), switches, str(signature)
