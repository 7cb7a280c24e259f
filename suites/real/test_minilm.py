"""all-MiniLM-L6-v2 through the engine, against sentence-transformers and against float64.

Passes wrongly if the bounds left room for a step in half precision. Ruled out by
suites/meta/test_suites_can_fail.py: `minilm-starts-in-half-precision`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer

from engine.request import PoolingParams, PoolingRequest, Task
from engine.tokenization import TokenizedPrompt, Tokenizer
from harness.oracle.oracle import Oracle
from suites.figures import show
from suites.parity.fleet import Fleet, Way
from suites.real import goldens
from suites.real.accuracy import (
    COLUMNS,
    RELATIVE_L2,
    TIMES_HUGGING_FACE,
    Compared,
    relative_l2,
    worst,
)
from suites.real.texts import TEXTS

pytestmark = [pytest.mark.xdist_group("minilm"), pytest.mark.timeout(900)]

WAYS = (
    Way(mode="eager"),
    Way(mode="compiled"),
    Way(mode="eager", stages=2, asynchronous=True, policy="threaded"),
)


class World:
    """Owns: the engines' weights, both references, and the prompts as tokens."""

    def __init__(self, path: Path) -> None:
        tokenizer = Tokenizer(path)
        self.prompts = [tokenizer.encode(text) for text in TEXTS]
        self.fleet = Fleet(path, max_model_len=256)
        self.float64, self.float32 = Oracle(path), Oracle(path, dtype="float32")
        self.sentence_transformer = SentenceTransformer(
            str(path), device="cpu", local_files_only=True
        )

    def run(self, way: Way, task: Task, params: PoolingParams) -> list[torch.Tensor]:
        """One output for each of TEXTS, run together."""
        requests = [
            PoolingRequest(request_id=str(i), token_ids=p.token_ids, task=task, params=params)
            for i, p in enumerate(self.prompts)
        ]
        outputs = self.fleet.run(way, requests).outputs
        return [outputs[str(i)].values for i in range(len(requests))]

    def reference(self, oracle: Oracle, prompt: TokenizedPrompt, task: Task) -> torch.Tensor:
        types = list(prompt.type_ids) or None
        if task is Task.EMBED:
            return oracle.embed(prompt.token_ids, "MEAN", normalize=True, type_ids=types)
        return oracle.token_embed(prompt.token_ids, normalize=False, type_ids=types)


@pytest.fixture(scope="module")
def world(minilm: Path) -> World:
    return World(minilm)


def test_token_ids_are_the_stored_goldens(minilm: Path) -> None:
    assert goldens.check("minilm", minilm) >= 10


def test_lengths_are_several(world: World) -> None:
    lengths = [len(p.token_ids) for p in world.prompts]
    assert min(lengths) == 3
    assert max(lengths) > 128
    assert len(set(lengths)) == len(lengths)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_embeddings_match_sentence_transformers(world: World, way: Way) -> None:
    theirs = world.sentence_transformer
    features: Mapping[str, Any] = theirs.tokenize(list(TEXTS))
    for prompt, ids, mask in zip(
        world.prompts, features["input_ids"], features["attention_mask"], strict=True
    ):
        assert ids[mask.bool()].tolist() == list(prompt.token_ids)
    mine = world.run(way, Task.EMBED, PoolingParams())
    batched = theirs.encode(list(TEXTS), batch_size=len(TEXTS), convert_to_tensor=True)
    rows = []
    for index, (text, prompt) in enumerate(zip(TEXTS, world.prompts, strict=True)):
        truth = world.reference(world.float64, prompt, Task.EMBED)
        alone = theirs.encode(text, convert_to_tensor=True)
        rows.append(
            (
                text[:24],
                len(prompt.token_ids),
                relative_l2(mine[index], batched[index]),
                relative_l2(mine[index], alone),
                relative_l2(mine[index], truth),
                relative_l2(batched[index], truth),
            )
        )
    show(
        f"MiniLM against sentence-transformers, relative L2, {way.mode}, {way.stages} stages",
        ("text", "tokens", "to its batch", "to it alone", "off float64", "its batch off float64"),
        rows,
    )
    assert max(max(row[2], row[3]) for row in rows) <= RELATIVE_L2


@pytest.mark.parametrize("task", [Task.EMBED, Task.TOKEN_EMBED])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_error_is_within_twice_hugging_face(world: World, way: Way, task: Task) -> None:
    params = PoolingParams(normalize=None if task is Task.EMBED else False)
    found = []
    for text, prompt, mine in zip(TEXTS, world.prompts, world.run(way, task, params), strict=True):
        truth = world.reference(world.float64, prompt, task)
        theirs = world.reference(world.float32, prompt, task)
        found.append(
            Compared(
                prompt=text[:24],
                tokens=len(prompt.token_ids),
                engine=relative_l2(mine, truth),
                hugging_face=relative_l2(theirs, truth),
            )
        )
    show(
        f"MiniLM {task} off float64, relative L2 (worst row), {way.mode}, {way.stages} stages",
        COLUMNS,
        [c.row for c in found],
    )
    engine, hugging_face = worst(found)
    assert engine <= RELATIVE_L2
    assert engine <= TIMES_HUGGING_FACE * hugging_face
