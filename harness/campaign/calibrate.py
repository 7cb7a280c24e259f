"""What tolerances rest on, measured: enough samples for a 99.9th percentile.

Three pairs of runs of the same prompts: the eager, whole baseline beside float64, the same prompts
in chunks beside the baseline, and each prompt alone beside the baseline's batch.

In a causal model the row of token i is the LAST embedding of the first i + 1 tokens, and the rows
up to it are their token matrix, so one prompt of n tokens gives n samples of every kind. Encoders
need a prompt a sample.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.axes import Cell, baseline, inline
from harness.campaign.workbench import Workbench
from harness.case import Case, Prompt
from harness.judge.calibration import CHUNKED, COMPANY, FLOAT64, Entry, Null
from harness.judge.metrics import prefix_errors, row_errors
from harness.judge.output import Float64, Output, OutputKind, Outputs, kind_of
from harness.judge.tolerance import MIN_COUNT, QUANTILE, BucketKey, length_bucket

BATCH = 8
"""Prompts a run: enough to keep the engine busy, few enough to hold every row."""

_ROW_KINDS: Mapping[tuple[str, bool], tuple[OutputKind, OutputKind]] = {
    ("token_embed", False): (OutputKind.EMBEDDING, OutputKind.TOKEN_EMBEDDING),
    ("token_classify", False): (OutputKind.LOGIT, OutputKind.TOKEN_LOGIT),
    ("token_classify", True): (OutputKind.SCORE, OutputKind.TOKEN_SCORE),
}
"""Token-level request (task, activation) -> the kinds its rows are samples of."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Errors of one kind of one pair of runs; `lengths` are the prompts they are samples of."""

    kind: OutputKind
    pairs: str
    lengths: Sequence[int]
    errors: Float64


def measure(bench: Workbench, *, seed: int, command: str) -> tuple[Entry, ...]:
    """The q99.9 of every kind, length bucket and pair of runs that has samples enough."""
    found: dict[tuple[BucketKey, str], list[float]] = defaultdict(list)
    samples = _decoder_samples if bench.causal else _encoder_samples
    for some in samples(bench, random.Random(seed)):
        for length, error in zip(some.lengths, some.errors.tolist(), strict=True):
            bucket = length_bucket(length)
            key = BucketKey(bench.checkpoint.name, bench.system.dtype, some.kind, bucket)
            found[key, some.pairs].append(error)
    entries = (
        entry_of(key, pairs, errors, seed=seed, command=command)
        for (key, pairs), errors in found.items()
        if len(errors) >= MIN_COUNT
    )
    return tuple(sorted(entries, key=lambda entry: entry.place))


def entry_of(
    key: BucketKey, pairs: str, errors: Sequence[float], *, seed: int, command: str
) -> Entry:
    """The entry that these samples make."""
    quantile = float(np.quantile(errors, QUANTILE, method="higher"))
    null = Null(quantile=quantile, count=len(errors), seed=seed, command=command)
    return Entry(key=key, pairs=pairs, null=null)


def _decoder_samples(bench: Workbench, draw: random.Random) -> Iterator[Samples]:
    # (longest prompt, batches): rows 1-32, 33-128 and 129-end of them fill the three buckets.
    for longest, batches in ((32, 20), (128, 3), (bench.plan.max_model_len, 2)):
        for _ in range(batches):
            lengths = _lengths(longest, bench.plan.chunk)
            some = tuple(_tokens(draw, length, bench) for length in lengths)
            for (task, activated), kinds in _ROW_KINDS.items():
                if task == "token_classify" and bench.checkpoint.reranker is None:
                    continue
                for found in _beside(bench, _case(task, some, activated=activated)):
                    yield from _row_samples(kinds, found)


def _lengths(longest: int, chunk: int) -> Sequence[int]:
    """A batch: long prompts, and those whose last chunk, or whole, is of one to three rows.

    Products of few rows take kernels of their own: there sums are reordered if anywhere.
    """
    first = (longest - 1) // chunk * chunk
    few = [first + rows for rows in (1, 2, 3) if first and first + rows <= longest]
    return [*few, *(1, 2)[: BATCH // 4 if longest <= 32 else 0], *[longest] * BATCH][:BATCH]


def _row_samples(kinds: Sequence[OutputKind], found: Beside) -> Iterator[Samples]:
    """One prompt's rows, and its prefixes, each a sample of its own length."""
    sides, first = (found.value, found.reference, found.scale), found.first
    rows = row_errors(kinds[0], *sides)
    lengths = range(first + 1, len(rows) + 1)
    for kind in kinds:
        yield Samples(kind, found.pairs, lengths, rows[first:])
        if kind.whole is not None:
            yield Samples(kind.whole, found.pairs, lengths, prefix_errors(*sides)[first:])


def _encoder_samples(bench: Workbench, draw: random.Random) -> Iterator[Samples]:
    for low, high, count in ((1, 32, 1040), (33, 96, 1040)):
        for start in range(0, count, BATCH):
            lengths = [draw.randint(low, high) for _ in range(start, start + BATCH)]
            some = tuple(_tokens(draw, length, bench) for length in lengths)
            for task in ("embed", "token_embed"):
                kind = kind_of(task)
                for found in _beside(bench, _case(task, some)):
                    length = [lengths[found.prompt]]
                    sides = (found.value, found.reference, found.scale)
                    yield Samples(
                        kind, found.pairs, length, row_errors(kind, *sides).max(keepdims=True)
                    )
                    if kind.whole is not None:
                        yield Samples(
                            kind.whole, found.pairs, length, row_errors(kind.whole, *sides)
                        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One prompt's output beside what it is compared with."""

    pairs: str
    prompt: int
    value: Output
    reference: Output
    scale: Output
    """float64's output, the unit of relative errors."""
    first: int = 0
    """First row that the two sides computed differently."""


def _beside(bench: Workbench, case: Case) -> Iterator[Beside]:
    """Every prompt of a case in every pair of runs."""
    truth = bench.reference.outputs(case, bench.system.encode(case))
    whole = _run(bench, case, baseline())
    for index, (mine, exact) in enumerate(zip(whole, truth, strict=True)):
        yield Beside(pairs=FLOAT64, prompt=index, value=mine, reference=exact, scale=exact)
        alone = replace(case, prompts=(case.prompts[index],))
        yield Beside(
            pairs=COMPANY,
            prompt=index,
            value=_run(bench, alone, baseline())[0],
            reference=mine,
            scale=exact,
        )
    if not bench.causal:
        return
    chunked = _run(bench, case, baseline().with_value("chunk", "chunked"))
    for index, (other, mine, exact) in enumerate(zip(chunked, whole, truth, strict=True)):
        if len(other.rows) > bench.plan.chunk:
            yield Beside(
                pairs=CHUNKED,
                prompt=index,
                value=other,
                reference=mine,
                scale=exact,
                first=bench.plan.chunk,
            )


def _run(bench: Workbench, case: Case, cell: Cell) -> Outputs:
    session = bench.system.open(cell, inline(bench.system.settings[0]))
    return session.run(case, bench.system.encode(case)).outputs


def _case(task: str, prompts: tuple[Prompt, ...], *, activated: bool = False) -> Case:
    vector = task.endswith("embed")
    return Case(
        task=task,
        prompts=prompts,
        normalize=False if vector else None,
        activation=None if vector else activated,
    )


def _tokens(draw: random.Random, length: int, bench: Workbench) -> Prompt:
    tokens: list[int] = []
    vocabulary = bench.vocabulary
    refused: int | None = getattr(bench.system, "refused_token", None)  # few systems have one
    while len(tokens) < length:
        token = draw.randrange(vocabulary)
        if token != refused:
            tokens.append(token)
    return Prompt(tokens=tuple(tokens))
