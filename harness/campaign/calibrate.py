"""How far the baseline itself is from float64: enough samples for a 99.9th percentile.

In a causal model the row of token i is the LAST embedding of the first i + 1 tokens, so one
prompt of n tokens gives n samples of embeddings and of logits. Encoders need a prompt a sample.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from harness.axes import baseline
from harness.campaign.profile import FENCED_COPY_LAGS
from harness.campaign.workbench import Workbench
from harness.case import Case, Prompt
from harness.judge.metrics import row_errors
from harness.judge.output import Output, OutputKind
from harness.judge.tolerance import MIN_NULL_COUNT, QUANTILE, BucketKey, Null, length_bucket

BATCH = 8
"""Prompts a run: enough to keep the engine busy, few enough to hold every row."""

_KINDS = {
    ("token_embed", False): (OutputKind.EMBEDDING, OutputKind.TOKEN_EMBEDDING),
    ("token_classify", False): (OutputKind.LOGIT, OutputKind.TOKEN_LOGIT),
    ("token_classify", True): (OutputKind.SCORE, OutputKind.TOKEN_SCORE),
}
"""Token-level request (task, activation) -> the kinds its rows are samples of."""


def baseline_errors(bench: Workbench, *, seed: int, command: str) -> dict[BucketKey, Null]:
    """Measured q99.9 of the eager baseline's error against float64, by kind and length bucket."""
    samples: dict[BucketKey, list[float]] = defaultdict(list)
    measure = _decoder_samples if bench.causal else _encoder_samples
    for kinds, length, error in measure(bench, random.Random(seed)):
        for kind in kinds:
            key = BucketKey(bench.checkpoint.name, bench.system.dtype, kind, length_bucket(length))
            samples[key].append(error)
    return {
        key: Null(
            quantile=float(np.quantile(errors, QUANTILE, method="higher")),
            count=len(errors),
            seed=seed,
            command=command,
        )
        for key, errors in samples.items()
        if len(errors) >= MIN_NULL_COUNT
    }


Sample = tuple[Sequence[OutputKind], int, float]


def _decoder_samples(bench: Workbench, draw: random.Random) -> Iterator[Sample]:
    vocabulary = bench.vocabulary
    # (prompt length, prompts): rows 1-32, 33-128 and 129-end of them fill the three buckets.
    for length, count in ((32, 40), (128, 12), (bench.plan.max_model_len, 8)):
        prompts = [_tokens(draw, length, vocabulary) for _ in range(count)]
        for start in range(0, count, BATCH):
            some = tuple(prompts[start : start + BATCH])
            for (task, activated), kinds in _KINDS.items():
                if task == "token_classify" and bench.checkpoint.reranker is None:
                    continue
                vector = task == "token_embed"
                case = Case(
                    task=task,
                    prompts=some,
                    normalize=False if vector else None,
                    activation=None if vector else activated,
                )
                for mine, truth in _answers(bench, case):
                    for row, error in enumerate(row_errors(kinds[0], mine, truth)):
                        yield kinds, row + 1, float(error)


def _encoder_samples(bench: Workbench, draw: random.Random) -> Iterator[Sample]:
    for low, high, count in ((1, 32, 1040), (33, 96, 1040)):
        for start in range(0, count, BATCH):
            some = tuple(
                _tokens(draw, draw.randint(low, high), bench.vocabulary)
                for _ in range(start, start + BATCH)
            )
            embed = Case(task="embed", prompts=some, normalize=False)
            for prompt, (mine, truth) in zip(some, _answers(bench, embed), strict=True):
                length = len(prompt.tokens or ())
                error = float(row_errors(OutputKind.EMBEDDING, mine, truth).max())
                yield (OutputKind.EMBEDDING,), length, error


def _answers(bench: Workbench, case: Case) -> Iterator[tuple[Output, Output]]:
    prompts = bench.system.encode(case)
    session = bench.system.open(baseline(), {**FENCED_COPY_LAGS, "executor": "inline"})
    mine = session.run(case, prompts).outputs
    yield from zip(mine, bench.reference.outputs(case, prompts), strict=True)


def _tokens(draw: random.Random, length: int, vocabulary: int) -> Prompt:
    return Prompt(tokens=tuple(draw.randrange(vocabulary) for _ in range(length)))
