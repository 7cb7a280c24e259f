"""What a run proves: the claims that its records carry, each with the figure behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.record import Comparison, Outcome, PairRecord, Tier
from reports.load import Run
from reports.view.text import plural


def proof(run: Run) -> tuple[str, ...]:
    """Claims about the comparisons that agree; none where nothing agrees."""
    agreeing = [p for p in run.pairs if p.outcome is Outcome.PASS]
    return tuple(_claims(agreeing))


def _claims(agreeing: list[PairRecord]) -> Iterable[str]:
    cases = {(p.checkpoint, p.case_id) for p in agreeing}
    across = [p for p in agreeing if p.comparison in (Comparison.BASELINE, Comparison.EDGE)]
    ways = {
        (p.checkpoint, _key(cell))
        for p in across
        if p.comparison is Comparison.BASELINE
        for cell in (p.cell_a, p.cell_b)
    }
    edges = {
        (p.checkpoint, frozenset((_key(p.cell_a), _key(p.cell_b))))
        for p in across
        if p.comparison is Comparison.EDGE
    }
    if across:
        yield (
            f"{plural(len(across), 'comparison')} of two ways of running agree, over "
            f"{plural(len(cases), 'case')}: {plural(len(ways), 'way')}, the baseline among them, "
            f"and {plural(len(edges), 'edge')} (two ways that differ in one switch)."
        )
    exact = [p for p in across if p.tier is Tier.EXACT]
    if exact:
        yield (
            f"{len(exact):,} of them agree to the last bit: they differ in when or where the work "
            "was done, and that may change nothing."
        )
    acted = tuple(dict.fromkeys(axis for p in across for axis in p.axes))
    if acted:
        yield (
            f"In each of them every switch that differs ({', '.join(acted)}) was seen to act, and "
            "the answer was seen to move when the prompt does: “Can I trust the tool?” has counts."
        )
    checked = sum(p.comparison is Comparison.ORACLE for p in agreeing)
    if checked:
        yield (
            f"{plural(checked, 'answer')} of the plainest way agree with the same model computed "
            "in 64-bit numbers by other code, so the ways are not wrong alike."
        )
    related = sum(p.comparison is Comparison.RELATION for p in agreeing)
    if related:
        yield (
            f"{plural(related, 'comparison')} of one way with itself agree: other company, another "
            "order, again."
        )


def _key(cell: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(cell.items())
