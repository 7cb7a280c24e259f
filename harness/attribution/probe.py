"""Probes of a shrunk case: under which other stream policies it fails, and what hides it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.attribution.laboratory import Laboratory
from harness.attribution.sets import (
    Switches,
    cell_of,
    closure,
    one_larger,
    told,
    told_all,
)
from harness.attribution.signature import FailureKind
from harness.axes import Cell
from harness.case import Case, Prompt

SPLIT = "chunk=chunked"
_OTHER_TASK = {"embed": "token_embed", "token_embed": "embed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProbe:
    """What the shrunk case does under one stream policy."""

    settings: Mapping[str, str]
    sets: tuple[Switches, ...]
    """Minimal failing sets among the cells that were tried; empty: none failed."""

    @property
    def name(self) -> str:
        """`lag(copy@last), ring inputs`"""
        inputs = self.settings.get("inputs", "")
        return self.settings.get("stream_policy", "threaded") + (
            f", {inputs} inputs" if inputs else ""
        )


def probe_policies(
    case: Case,
    sets: Sequence[Switches],
    laboratory: Laboratory,
    *,
    kind: FailureKind,
    policies: Sequence[Mapping[str, str]],
    cells: Sequence[Cell],
) -> tuple[PolicyProbe, ...]:
    """Run the minimal sets, their subsets and each with one value more, under every policy."""
    wanted = (*closure(sets), *one_larger(sets, cells))
    chosen = [cell for cell in wanted if cell in set(cells)]
    found = []
    for settings in policies:
        table = laboratory.table(case, settings, chosen, kind)
        found.append(PolicyProbe(settings=settings, sets=table.sets))
    return tuple(found)


def tell_policies(probes: Sequence[PolicyProbe], sets: Sequence[Switches]) -> Iterator[str]:
    """One sentence for each way in which a policy acts."""
    quiet = [probe.name for probe in probes if not probe.sets]
    same = [probe.name for probe in probes if probe.sets and set(probe.sets) == set(sets)]
    if same:
        yield f"the same sets also fail under {'; '.join(same)}"
    for probe in probes:
        if not probe.sets or set(probe.sets) == set(sets):
            continue
        known = [s for s in probe.sets if any(s > mine for mine in sets)]
        extra = set().union(*(s - mine for s in known for mine in sets if s > mine))
        only = f" only with {told(frozenset(extra))}" if known and extra else ""
        yield f"fails under {probe.name}{only or f' with {told_all(probe.sets)}'}"
    if quiet:
        yield f"does not fail under {'; '.join(quiet)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The shrunk case with one thing changed."""

    mask: str
    """`name=value`, as reported when it hides the failure."""
    condition: str
    """The same as a sentence."""
    case: Case
    added: Switches = frozenset()
    """Axis values that belong to the change."""


def variants(
    case: Case, sets: Sequence[Switches], *, ids: Sequence[int], chunk: int, max_len: int
) -> Iterator[Variant]:
    """Changes that may hide a failure: another head, another task, prompts that are all split.

    `ids`: token ids to make longer prompts of.
    """
    count = len(case.prompts)
    if ids and 2 * chunk + 1 <= max_len and not any(SPLIT in s for s in sets):
        yield Variant(
            mask=SPLIT,
            condition="hidden when every prompt is split over steps",
            case=replace(case, prompts=tuple(_of(ids, i, 2 * chunk + 1) for i in range(count))),
            added=frozenset({SPLIT}),
        )
    if case.task in _OTHER_TASK:
        other = case.normalize is False
        yield Variant(
            mask=f"normalize={other}",
            condition=f"hidden with normalize={other}",
            case=replace(case, normalize=other),
        )
        task = _OTHER_TASK[case.task]
        yield Variant(
            mask=f"task={task}", condition=f"hidden for {task}", case=replace(case, task=task)
        )
    elif case.task in ("score", "classify", "token_classify"):
        other = case.activation is False
        yield Variant(
            mask=f"activation={other}",
            condition=f"hidden with activation={other}",
            case=replace(case, activation=other),
        )


def hiding(
    case: Case,
    sets: Sequence[Switches],
    laboratory: Laboratory,
    *,
    kind: FailureKind,
    settings: Mapping[str, str],
    ids: Sequence[int],
    chunk: int,
    max_len: int,
) -> tuple[Variant, ...]:
    """The variants under which every minimal set stops failing.

    A variant that brings an axis value along counts only if, without that value, it still fails:
    else the longer prompts hide the failure and not the split.
    """
    found = []
    for variant in variants(case, sets, ids=ids, chunk=chunk, max_len=max_len):
        plain = [cell_of(s) for s in sets]
        changed = [cell_of(s | variant.added) for s in sets]
        table = laboratory.table(variant.case, settings, (*plain, *changed), kind)
        states = [table.states[cell] for cell in changed if cell in table.states]
        fails_without = any(cell in table.bad for cell in plain)
        if len(states) == len(changed) and all(state.good for state in states):
            if variant.added and not fails_without:
                continue
            found.append(variant)
    return tuple(found)


def _of(ids: Sequence[int], prompt: int, length: int) -> Prompt:
    """A prompt of these ids in turn; another prompt begins elsewhere, so that no two are equal."""
    return Prompt(tokens=tuple(ids[(prompt + i) % len(ids)] for i in range(length)))


def everywhere(probes: Sequence[PolicyProbe], sets: Sequence[Switches]) -> bool:
    """Whether the same sets fail under every policy that was tried, and some were."""
    return bool(probes) and all(set(probe.sets) == set(sets) for probe in probes)
