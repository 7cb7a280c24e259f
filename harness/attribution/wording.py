"""Findings in plain words, and the conditions a replay reads back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from harness.attribution.sets import told_all
from harness.attribution.signature import ANY_POLICY, OWN_POLICY, FailureKind, Signature
from harness.axes import Plan
from harness.case import Case
from harness.record import FindingRecord

_SETTING = re.compile(r"(stream_policy|inputs|executor)=(\S+)")
_LIMIT = re.compile(r"limit=(\S+)")
MAX_LIKE = 3
"""Equal chunks in a row that are written out."""
DEFAULT_SETTINGS = {"stream_policy": "threaded", "inputs": "fenced"}


def title(task: str, signature: Signature) -> str:
    """`embed differs when chunk=chunked AND compile=compiled (stream policy paced(1))`"""
    when = told_all(signature.sets)
    under = {ANY_POLICY: "any stream policy", OWN_POLICY: "as the system schedules"}.get(
        signature.policy, f"stream policy {signature.policy}"
    )
    match signature.kind:
        case FailureKind.BASELINE:
            return f"{task}: the baseline itself is far from float64 ({under})"
        case FailureKind.HAZARD:
            reach = f"when {when}" if when else "in the baseline itself"
            return f"{task}: buffer accesses that nothing orders, {reach} ({under})"
        case _:
            return f"{task} differs when {when} ({under})"


def smallest_case(lengths: Sequence[int], plan: Plan, *, chunk: int, split: bool) -> str:
    """`smallest case: 1 prompt of 33 tokens, in chunks of 16 + 16 + 1`

    `plan` is that of the smallest failing cell, `split` whether that cell splits prompts.
    """
    distinct = sorted(set(lengths))
    sizes = " and ".join(map(str, distinct))
    noun = "token" if distinct == [1] else "tokens"
    text = f"smallest case: {plural(len(lengths), 'prompt')} of {sizes} {noun}"
    if split:
        return f"{text}, in chunks of {_chunks(plan)} (at most {chunk} a step)"
    if all(length <= chunk for length in lengths):
        each = "it fits" if len(lengths) == 1 else "each fits"
        return f"{text} in {plural(len(plan), 'step')}; {each} one chunk of {chunk}"
    return f"{text} in {plural(len(plan), 'step')}"


def _chunks(plan: Plan) -> str:
    """`16 + 1 and 4`: the sizes of each prompt's chunks in order; prompts alike are told once."""
    sizes: dict[str, list[int]] = {}
    for step in plan:
        for entry in step:
            sizes.setdefault(str(entry[0]), []).append(int(entry[2]))
    return " and ".join(dict.fromkeys(_sum_of(own) for own in sizes.values())) or "no token"


def _sum_of(sizes: Sequence[int]) -> str:
    """`16 + 1`, `4 x 16 + 1`"""
    runs = [(size, len(list(run))) for size, run in itertools.groupby(sizes)]
    return " + ".join(
        f"{count} x {size}" if count > MAX_LIKE else " + ".join([str(size)] * count)
        for size, count in runs
    )


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def output_of(case: Case, level: str) -> str:
    """Output level and head, which decide whether rows are copied on their way out."""
    if case.task in ("embed", "token_embed"):
        identity = case.normalize is False and case.dimensions is None
        head = "identity head (normalize=False)" if identity else "normalising head"
    else:
        head = "no activation" if case.activation is False else "activation"
    return f"{level}-level output, {head}"


def settings_conditions(settings: Mapping[str, str], limit: float) -> tuple[str, ...]:
    """What `settings_of` and `limit_of` read back."""
    known = tuple(f"{name}={settings[name]}" for name in DEFAULT_SETTINGS if name in settings)
    if limit <= 0:
        return known
    return (*known, f"limit={limit!r} for cells whose kernels or order of sums differ")


def settings_of(finding: FindingRecord) -> dict[str, str]:
    """Stream policy and inputs that the finding was shrunk under."""
    if Signature.parse(finding.signature).policy == OWN_POLICY:
        return {}
    found = dict(DEFAULT_SETTINGS)
    for condition in finding.conditions:
        match = _SETTING.fullmatch(condition)
        if match is not None:
            found[match.group(1)] = match.group(2)
    return found


def limit_of(finding: FindingRecord) -> float:
    """How far apart cells of the looser tiers may be, as the finding's run measured it."""
    for condition in finding.conditions:
        match = _LIMIT.match(condition)
        if match is not None:
            return float(match.group(1))
    return 0.0
