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
from harness.attribution.signature import FailureKind, is_racy
from harness.attribution.table import CellState
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
    racy: bool = False
    """Whether which of the sets failed was luck."""
    tries: int = 1
    """How often each cell was run, at most."""

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
        racy = is_racy(settings, kind)
        tries = laboratory.attempts if racy else 1
        found.append(PolicyProbe(settings=settings, sets=table.sets, racy=racy, tries=tries))
    return tuple(found)


def tell_policies(probes: Sequence[PolicyProbe], sets: Sequence[Switches]) -> Iterator[str]:
    """One sentence for each way in which a policy acts."""
    for probe in probes:
        if probe.racy:
            told_luck = "failed within" if probe.sets else "no failure in"
            yield f"{probe.name}: {told_luck} {probe.tries} tries of each cell"
    probes = [probe for probe in probes if not probe.racy]
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
    """One change to a failing case, which may hide the failure."""

    mask: str
    """`name=value`, as reported when it does."""
    condition: str
    """The same as a sentence."""
    before: Case
    after: Case
    added: Switches = frozenset()
    """Axis values that belong to the change."""


def variants(
    case: Case, sets: Sequence[Switches], *, ids: Sequence[int], chunk: int, max_len: int
) -> Iterator[Variant]:
    """Changes that may hide a failure: another head, another task, prompts that are all split.

    They start from prompts of the case's lengths made of `ids` in turn: a shrunk case has tokens so
    alike that a change could seem to hide what only they do.
    """
    if not ids or any(prompt.tokens is None for prompt in case.prompts):
        return
    base = _with_lengths(case, ids, [len(prompt.tokens or ()) for prompt in case.prompts])
    if 2 * chunk + 1 <= max_len and not any(SPLIT in s for s in sets):
        longer = _with_lengths(case, ids, [2 * chunk + 1] * len(case.prompts))
        yield Variant(
            mask=SPLIT,
            condition="hidden when every prompt is split over steps",
            before=longer,
            after=longer,
            added=frozenset({SPLIT}),
        )
    if case.task in _OTHER_TASK:
        other = case.normalize is False
        yield Variant(
            mask=f"normalize={other}",
            condition=f"hidden with normalize={other}",
            before=base,
            after=replace(base, normalize=other),
        )
        task = _OTHER_TASK[case.task]
        yield Variant(
            mask=f"task={task}",
            condition=f"hidden for {task}",
            before=base,
            after=replace(base, task=task),
        )
    elif case.task in ("score", "classify", "token_classify"):
        other = case.activation is False
        yield Variant(
            mask=f"activation={other}",
            condition=f"hidden with activation={other}",
            before=base,
            after=replace(base, activation=other),
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
    """The variants with which no minimal set fails any more, though all did just before."""

    def states(chosen: Case, added: Switches = frozenset()) -> list[CellState]:
        cells = [cell_of(values | added) for values in sets]
        table = laboratory.table(chosen, settings, cells, kind)
        return [table.states[cell] for cell in cells if cell in table.states]

    found: list[Variant] = []
    tried: dict[str, list[CellState]] = {}
    for variant in variants(case, sets, ids=ids, chunk=chunk, max_len=max_len):
        key = variant.before.case_id
        if key not in tried:
            tried[key] = states(variant.before)
        before, after = tried[key], states(variant.after, variant.added)
        complete = len(before) == len(after) == len(sets)
        if complete and all(map(went_away, before, after)):
            found.append(variant)
    return tuple(found)


def went_away(before: CellState, after: CellState) -> bool:
    """Whether a failure went away; not where it was the change that kept a switch from acting."""
    return before.bad and after.good and (after.passed or bool(before.unreachable))


def _with_lengths(case: Case, ids: Sequence[int], lengths: Sequence[int]) -> Case:
    return replace(case, prompts=tuple(_of(ids, i, n) for i, n in enumerate(lengths)))


def _of(ids: Sequence[int], prompt: int, length: int) -> Prompt:
    """A prompt of these ids in turn; another prompt begins elsewhere, so that no two are equal."""
    return Prompt(tokens=tuple(ids[(prompt + i) % len(ids)] for i in range(length)))


def everywhere(probes: Sequence[PolicyProbe], sets: Sequence[Switches]) -> bool:
    """Whether the same sets fail under every policy that was tried, and some were.

    Where luck has a part, some failure is enough.
    """
    return bool(probes) and all(
        bool(probe.sets) if probe.racy else set(probe.sets) == set(sets) for probe in probes
    )
