"""How much was tried: cases and lengths per checkpoint, boundary classes, settings, comparisons."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass

from harness.record import CheckpointInfo, Outcome
from reports.load import Run
from reports.view.text import plural

MAX_CLASSES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCoverage:
    """What one checkpoint was asked."""

    name: str
    description: str
    cases: int
    prompts: int
    lengths: str
    length_bins: tuple[tuple[str, int], ...]
    """(tokens in words, prompts) for each doubling from 1 to the longest."""
    tasks: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRow:
    """Cases that hit one boundary class, per checkpoint in the order of the table's head."""

    name: str
    cases: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """Judged (PASS or FAIL) and all pairs under one value of one setting."""

    name: str
    value: str
    judged: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    checkpoints: tuple[CheckpointCoverage, ...]
    boundaries: tuple[BoundaryRow, ...]
    more_boundaries: int
    settings: tuple[SettingRow, ...]
    more_settings: int
    comparisons: tuple[tuple[str, int], ...]


def coverage(run: Run) -> Coverage:
    names = tuple(c.name for c in run.manifest.checkpoints)
    boundaries = _boundaries(run, names)
    settings = _settings(run)
    return Coverage(
        checkpoints=tuple(_checkpoint(run, c) for c in run.manifest.checkpoints),
        boundaries=boundaries[:MAX_CLASSES],
        more_boundaries=max(0, len(boundaries) - MAX_CLASSES),
        settings=settings[:MAX_CLASSES],
        more_settings=max(0, len(settings) - MAX_CLASSES),
        comparisons=tuple(Counter(str(p.comparison) for p in run.pairs).most_common()),
    )


def _checkpoint(run: Run, info: CheckpointInfo) -> CheckpointCoverage:
    cases = [c for c in run.cases.values() if c.checkpoint == info.name]
    lengths = [n for c in cases for n in c.lengths]
    told = "none"
    if lengths:
        told = (
            f"{min(lengths):,} to {max(lengths):,}, median {statistics.median(lengths):,.0f}; "
            f"{sum(n > 256 for n in lengths):,} over 256"
        )
    return CheckpointCoverage(
        name=info.name,
        description=(
            f"{info.kind}, {info.origin}, {info.dtype}, {plural(info.num_layers, 'layer')}, "
            f"{info.num_parameters:,} parameters"
        ),
        cases=len(cases),
        prompts=len(lengths),
        lengths=told,
        length_bins=_bins(lengths),
        tasks=tuple(Counter(c.task for c in cases).most_common()),
    )


def _bins(lengths: list[int]) -> tuple[tuple[str, int], ...]:
    counted = Counter(max(0, n).bit_length() for n in lengths)
    return tuple(
        (_tokens(1 << (bits - 1), (1 << bits) - 1), counted[bits])
        for bits in range(1, max(counted, default=0) + 1)
    )


def _tokens(low: int, high: int) -> str:
    return "1 token" if high == 1 else f"{low:,} to {high:,} tokens"


def _boundaries(run: Run, names: tuple[str, ...]) -> tuple[BoundaryRow, ...]:
    hits: dict[str, Counter[str]] = {}
    for case in run.cases.values():
        for boundary in dict.fromkeys(case.boundaries):
            hits.setdefault(boundary, Counter())[case.checkpoint] += 1
    return tuple(
        BoundaryRow(name=boundary, cases=tuple(counted[n] for n in names))
        for boundary, counted in sorted(hits.items())
    )


def _settings(run: Run) -> tuple[SettingRow, ...]:
    pairs: Counter[tuple[str, str]] = Counter()
    judged: Counter[tuple[str, str]] = Counter()
    for pair in run.pairs:
        for item in pair.settings.items():
            pairs[item] += 1
            judged[item] += pair.outcome in (Outcome.PASS, Outcome.FAIL)
    return tuple(
        SettingRow(name=name, value=value, judged=judged[name, value], pairs=n)
        for (name, value), n in sorted(pairs.items())
    )
