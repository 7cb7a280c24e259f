"""transformers and sentence-transformers as systems: right, attested, never truncated.

Passes wrongly if the bound was so wide that another token's row is within it. Ruled out by
suites/meta/test_suites_can_fail.py: `last-pooling-takes-the-first-row`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from harness.axes import AXES, baseline
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import path_of
from harness.judge.metrics import error
from harness.judge.output import Output, OutputKind
from harness.oracle.oracle import Oracle
from harness.systems.base import SystemFailed
from harness.systems.hf import HuggingFace, hf
from harness.systems.sbert import SentenceTransformers, sbert
from suites.unit.systems.assignments import assignment

TEXTS = Case(task="embed", prompts=tuple(Prompt(text=t) for t in ("rain falls", "a", "two b c d")))
NEAR = 1e-5
"""Relative L2 to float64: the project's acceptance bar for float32."""


@pytest.fixture(scope="module")
def plain() -> Iterator[HuggingFace]:
    system = hf(assignment("tiny-qwen3"))
    yield system
    system.close()


@pytest.fixture(scope="module")
def sentences() -> Iterator[SentenceTransformers]:
    system = sbert(assignment("tiny-bert"))
    yield system
    system.close()


def test_transformers_is_right_in_a_padded_batch(plain: HuggingFace) -> None:
    oracle = Oracle(path_of("tiny-qwen3"))
    prompts = plain.encode(TEXTS)
    run = plain.open(baseline(), {}).run(TEXTS, prompts)
    assert [len(step) for step in run.plan] == [2, 1], "two prompts a call, as it was told"
    for prompt, output in zip(prompts, run.outputs, strict=True):
        truth = Output.of(oracle.embed(prompt.token_ids, "LAST", normalize=True).numpy())
        assert error(OutputKind.EMBEDDING, output, truth) < NEAR
    for axis in AXES.values():
        assert axis.witnessed(baseline(), run.witness) is None
    assert run.witness["padded_tokens"][0] > sum(len(p.token_ids) for p in prompts[:2]) // 2


def test_sentence_transformers_reads_texts_and_ids_alike(sentences: SentenceTransformers) -> None:
    prompts = sentences.encode(TEXTS)
    ids = Case(task="embed", prompts=tuple(Prompt(tokens=p.token_ids) for p in prompts))
    session = sentences.open(baseline(), {})
    texts, tokens = session.run(TEXTS, prompts), session.run(ids, prompts)
    oracle = Oracle(path_of("tiny-bert"))
    for prompt, a, b in zip(prompts, texts.outputs, tokens.outputs, strict=True):
        truth = Output.of(oracle.embed(prompt.token_ids, "MEAN", normalize=True).numpy())
        assert error(OutputKind.EMBEDDING, a, truth) < NEAR
        assert error(OutputKind.EMBEDDING, b, truth) < NEAR
    # The library sorts by length; whose tokens were in which call is read off the ids.
    assert [entry[0] for step in texts.plan for entry in step] == ["0", "2", "1"]
    assert [entry[0] for step in tokens.plan for entry in step] == ["0", "1", "2"]


def test_token_rows_and_raw_vectors(sentences: SentenceTransformers) -> None:
    case = replace(TEXTS, task="token_embed", normalize=False)
    prompts = sentences.encode(case)
    run = sentences.open(baseline(), {}).run(case, prompts)
    assert [o.shape[0] for o in run.outputs] == [len(p.token_ids) for p in prompts]
    assert not np.isclose(np.linalg.norm(run.outputs[0].data[0]), 1.0)


def test_a_truncated_text_is_an_error() -> None:
    system = sbert(assignment("tiny-bert", max_model_len=4))
    case = Case(task="embed", prompts=(Prompt(text="a text of many more tokens than four"),))
    with pytest.raises(SystemFailed, match="truncated"):
        system.open(baseline(), {}).run(case, system.encode(case))
    system.close()


def test_what_they_cannot_answer_is_named(
    plain: HuggingFace, sentences: SentenceTransformers
) -> None:
    score = Case(task="score", prompts=(Prompt(query="a", document="b"),))
    with pytest.raises(SystemFailed, match=r"task='score' is not supported on tiny-bert; valid:"):
        sentences.open(baseline(), {}).run(score, sentences.encode(score))
    beyond = Case(task="embed", prompts=(Prompt(tokens=(5, 1 << 20)),))
    with pytest.raises(SystemFailed, match="expected token ids in"):
        plain.open(baseline(), {}).run(beyond, plain.encode(beyond))
