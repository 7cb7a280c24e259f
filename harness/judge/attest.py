"""Whether two runs are a fair pair: each did what its cell says, and nothing else differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from harness.axes import ALL_AXES, Evidence, EvidenceError, differing, setting_witnessed
from harness.axes.overlap import cannot_overlap
from harness.judge.subject import Execution, Subject
from harness.record import Comparison, Json, Tier

SHARED = ("instruction_set", "flags")
"""Top-level entries of a witness that no axis may change."""
SAME_BITS = ("plan_digest", "padded_tokens")
"""What two runs must also share before they can be held to the same bits (law 6)."""


def misuse(
    a: Execution,
    b: Execution,
    comparison: Comparison,
    axes: Sequence[str],
    settings: Collection[str],
) -> str | None:
    """Why the pair, as declared, is not one: it differs in what it does not declare, or not at all.

    `axes` and `settings` are the names of the axes and settings declared to differ.
    """
    actual = differing(a.cell, b.cell)
    if set(actual) != set(axes):
        return (
            f"the cells differ in {', '.join(actual) or 'nothing'}, the pair declares "
            f"{', '.join(axes) or 'nothing'}"
        )
    names = sorted({*a.settings, *b.settings})
    other = [n for n in names if a.settings.get(n) != b.settings.get(n)]
    undeclared = [n for n in other if n not in settings]
    if undeclared:
        return "the sides also differ in the settings " + ", ".join(
            f"{n} ({a.settings.get(n)} against {b.settings.get(n)})" for n in undeclared
        )
    if comparison is Comparison.EDGE and len(actual) != 1:
        return f"an edge differs in one axis, got {', '.join(actual) or 'none'}"
    if not actual and not other:
        return "the sides differ in no axis and no setting"
    return None


def unwitnessed(a: Execution, b: Execution, axes: Sequence[str]) -> str | None:
    """Why a differing axis, or a setting of either side, did not take effect."""
    for side, run in (("A", a), ("B", b)):
        for name in axes:
            reason = ALL_AXES[name].witnessed(run.cell, run.witness)
            if reason is not None:
                return f"side {side} ({run.execution_id}): {reason}"
        for name, value in run.settings.items():
            reason = setting_witnessed(name, value, run.witness)
            if reason is not None:
                return f"side {side} ({run.execution_id}): {reason}"
    return None


def _threads(run: Execution) -> Json:
    try:
        return sorted(set(Evidence(witness=run.witness).counts("num_threads")))
    except EvidenceError:
        return None


def _shared(run: Execution, key: str, axes: Sequence[str]) -> Json:
    """An entry of the run's witness that both sides must share, less what the axes declare."""
    value = run.witness.get(key)
    declared = {ALL_AXES[name].flag for name in axes}
    if key != "flags" or not isinstance(value, Mapping) or declared == {None}:
        return value
    return {name: flag for name, flag in value.items() if name not in declared}


def _undeclared_action(
    subject: Subject, a: Execution, b: Execution, axes: Sequence[str]
) -> str | None:
    """An axis both cells set alike, or leave at rest alike, but which acted on one side only."""
    for name, axis in ALL_AXES.items():
        if name in axes or (name not in a.cell and axis.setting in a.settings):
            continue
        # What cannot act on this case under either plan is no difference between the sides.
        if any(axis.applicable(run.cell, subject.lengths, run.plan) for run in (a, b)):
            continue
        reasons = [axis.witnessed(run.cell, run.witness) for run in (a, b)]
        if name == "async" and any(cannot_overlap(run.cell, run.settings) for run in (a, b)):
            continue
        if (reasons[0] is None) != (reasons[1] is None):
            side = "A" if reasons[0] is not None else "B"
            return f"the sides also differ in {name}: on side {side}, {reasons[side == 'B']}"
    return None


def unattested(
    subject: Subject, a: Execution, b: Execution, axes: Sequence[str], tier: Tier
) -> str | None:
    """Why the pair cannot be held to its tier: an attestation that differs or is missing."""
    needed: list[tuple[str, Json, Json]] = [
        ("num_threads", _threads(a), _threads(b)),
        *((key, _shared(a, key, axes), _shared(b, key, axes)) for key in SHARED),
    ]
    # Some axes change the plan by nature; batch_invariant is the attestation that they may.
    if tier is Tier.EXACT and not any(ALL_AXES[n].replans for n in axes):
        needed += [(key, a.witness.get(key), b.witness.get(key)) for key in SAME_BITS]
    return _unequal(needed, tier) or _undeclared_action(subject, a, b, axes)


def unlike(a: Execution, b: Execution, tier: Tier, *, same_plan: bool) -> str | None:
    """Why a follow-up is no fair one: it ran in another cell, or on another machine or setting."""
    if dict(a.cell) != dict(b.cell):
        return f"the follow-up ran in {dict(b.cell)}, the case in {dict(a.cell)}"
    names = sorted({*a.settings, *b.settings} - {"relation"})
    other = [n for n in names if a.settings.get(n) != b.settings.get(n)]
    if other:
        return f"the follow-up also differs in the settings {', '.join(other)}"
    needed = [
        ("num_threads", _threads(a), _threads(b)),
        *((key, a.witness.get(key), b.witness.get(key)) for key in SHARED),
    ]
    if tier is Tier.EXACT and same_plan:
        needed += [(key, a.witness.get(key), b.witness.get(key)) for key in SAME_BITS]
    return _unequal(needed, tier)


def _unequal(needed: Sequence[tuple[str, Json, Json]], tier: Tier) -> str | None:
    """The first attestation that differs, or is missing where bits rest on it."""
    for key, mine, other in needed:
        if tier is Tier.EXACT and (mine is None or other is None):
            side = "A" if mine is None else "B"
            return f"held to the same bits, but side {side} does not attest its {key}"
        if _plain(mine) != _plain(other):
            return f"the sides also differ in {key}: {_difference(mine, other)}"
    return None


def _plain(value: Json) -> Json:
    """Tuples and lists alike: a witness may come from memory or from a record."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _difference(mine: Json, other: Json) -> str:
    if isinstance(mine, Mapping) and isinstance(other, Mapping):
        keys = [k for k in sorted({*mine, *other}) if mine.get(k) != other.get(k)]
        return ", ".join(f"{k}={mine.get(k)!r} against {other.get(k)!r}" for k in keys)
    return f"{mine!r} against {other!r}"


def hazards(a: Execution, b: Execution) -> str | None:
    """What the happens-before check of either side reports."""
    for side, run in (("A", a), ("B", b)):
        for rank in run.witness.get("ranks") or ():
            for hazard in rank.get("hazards") or ():
                return (
                    f"side {side} ({run.execution_id}): happens-before: rank {rank.get('rank')}: "
                    f"{hazard}"
                )
    return None
