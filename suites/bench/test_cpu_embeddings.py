"""Embedding texts on a CPU: our engine beside the libraries that people use, in one run.

Everybody gets the same texts and the same threads, in turns, so that a machine that slows down
slows all; a ratio is the median over rounds of one round's two times.

    make bench                                      # all costs
    python -m pytest suites/bench/test_cpu_embeddings.py -m bench -s

Passes wrongly if a library was run at a worse batch size than its best, or did something else than
embed the texts. Ruled out by `test_the_best_batch_is_the_fastest` and
`test_another_texts_embedding_is_beyond_the_bound`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
import torch

from engine.models.config import read_model_config
from engine.resources import Resources
from engine.tokenization import TokenizedPrompt
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.judge.output import OutputKind
from harness.judge.tolerance import ORACLE_CAP
from harness.strategies.texts import SENTENCES
from suites.bench.embedders import (
    HuggingFace,
    Ours,
    Products,
    SentenceTransformers,
    configuration,
    hugging_face,
    sentence_transformer,
)
from suites.figures import show

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

NUM_TEXTS, WORDS, SEED = 256, (4, 200), 0
FEW = 64
"""Texts on which a library's best batch size is found."""
BATCHES, DEFAULT_BATCH = (1, 8, 32, 64), 32
"""sentence-transformers' default."""
ROUNDS = {"minilm": 5, "smollm2": 3}
FORMATS = {"eager": "our engine", "compiled": "our engine, compiled"}
LENGTHS, GROWTH_TOKENS = (8, 32, 128, 512), 4096
NUMBERS, NUMBER_LENGTH = (1, 4, 16, 64), 64
BOUND = 2 * ORACLE_CAP["float32", OutputKind.EMBEDDING].floor
"""Relative: two float32 runs that are each within the acceptance bar of float64."""
Contender = Callable[[Sequence[str]], torch.Tensor | None]


def texts(count: int) -> list[str]:
    """English texts of 4 to 200 words, lengths uniform."""
    draw = random.Random(SEED)
    words = " ".join(text for text in SENTENCES if text.isascii()).split()
    return [" ".join(draw.choice(words) for _ in range(draw.randint(*WORDS))) for _ in range(count)]


def seconds(contender: Contender, given: Sequence[str]) -> float:
    began = time.perf_counter()
    contender(given)
    return time.perf_counter() - began


def rounds(
    contenders: Mapping[str, Contender], given: Sequence[str], count: int
) -> list[dict[str, float]]:
    """Everybody's seconds in each round; who begins changes."""
    found = []
    names = list(contenders)
    for turn in range(count):
        first = turn % len(names)
        order = names[first:] + names[:first]
        found.append({name: seconds(contenders[name], given) for name in order})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Everything that one checkpoint is embedded by."""

    ours: Mapping[str, Ours]
    products: Products
    sentence_transformers: Mapping[int, SentenceTransformers]
    hugging_face: Mapping[int, HuggingFace]


@contextmanager
def loaded(name: str, folder: Path) -> Iterator[Loaded]:
    resources = Resources(configuration(folder))
    ours = {mode: Ours(folder, resources, mode=mode) for mode in FORMATS}
    sbert, plain = sentence_transformer(folder), hugging_face(folder)
    pooling = CHECKPOINTS[name].pooling
    try:
        yield Loaded(
            ours=ours,
            products=Products(ours["eager"], resources),
            sentence_transformers={b: SentenceTransformers(sbert, b) for b in BATCHES},
            hugging_face={b: HuggingFace(folder, plain, pooling, b) for b in BATCHES},
        )
    finally:
        for engine in ours.values():
            engine.close()


def best(library: Mapping[int, Contender], given: Sequence[str]) -> int:
    """The batch size that is fastest on a few texts, the better of two tries each."""
    library[DEFAULT_BATCH](given)  # fills caches
    return min(library, key=lambda batch: min(seconds(library[batch], given) for _ in range(2)))


@pytest.mark.parametrize("name", ROUNDS)
def test_ratios(name: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(name)
    given = texts(NUM_TEXTS)
    with loaded(name, folder) as who:
        sbert = best(who.sentence_transformers, given[:FEW])
        plain = best(who.hugging_face, given[:FEW])
        contenders: dict[str, Contender] = {
            **{FORMATS[mode]: engine for mode, engine in who.ours.items()},
            "the layers' products alone": who.products,
            f"sentence-transformers, batch {DEFAULT_BATCH}": who.sentence_transformers[
                DEFAULT_BATCH
            ],
            f"sentence-transformers, batch {sbert} (best)": who.sentence_transformers[sbert],
            f"Hugging Face, batch {plain} (best)": who.hugging_face[plain],
        }
        rows = {label: contender(given) for label, contender in contenders.items()}
        taken = rounds(contenders, given, ROUNDS[name])
        tokens = sum(step.num_tokens for step in who.ours["eager"].plan)
    mine = rows[FORMATS["eager"]]
    show(
        f"{name}: {NUM_TEXTS} texts of {WORDS[0]} to {WORDS[1]} words, {tokens} tokens, "
        f"{torch.get_num_threads()} threads, median of {ROUNDS[name]} rounds",
        ("who", "seconds", "tokens/s", "time / ours", "time / ours, compiled", "differs by"),
        [
            (
                label,
                time_ := median(turn[label] for turn in taken),
                tokens / time_,
                *(median(turn[label] / turn[FORMATS[mode]] for turn in taken) for mode in who.ours),
                "-" if embedded is None else furthest(mine, embedded),
            )
            for label, embedded in rows.items()
        ],
    )
    for label, embedded in rows.items():
        assert embedded is None or furthest(mine, embedded) <= BOUND, label


def test_the_best_batch_is_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a table instead of a clock: the better of a batch's two tries decides."""
    tries = {1: [9.0, 8.0], 8: [2.0, 3.0], 32: [9.0, 1.0], 64: [4.0, 4.0]}
    library = {batch: lambda given, batch=batch: None for batch in BATCHES}
    batch_of = {contender: batch for batch, contender in library.items()}
    told = {batch: iter(found) for batch, found in tries.items()}
    monkeypatch.setattr(
        f"{__name__}.seconds", lambda contender, given: next(told[batch_of[contender]])
    )
    assert best(library, ["a"]) == 32


def test_another_texts_embedding_is_beyond_the_bound(minilm: Path) -> None:
    """What a contender would give that mixes up its texts, or pads into their means."""
    given = texts(4)
    with loaded("minilm", minilm) as who:
        mine, theirs = who.ours["eager"](given), who.hugging_face[1](given)
    assert furthest(mine, theirs) <= BOUND
    assert furthest(mine, theirs.roll(1, 0)) > BOUND
    assert furthest(mine, theirs + 1e-3 * theirs.mean(0)) > BOUND


def furthest(a: torch.Tensor, b: torch.Tensor) -> float:
    """Largest relative distance of two embeddings of one text."""
    return float(((a.double() - b.double()).norm(dim=1) / b.double().norm(dim=1)).max())


def prompts(count: int, length: int, vocabulary: int) -> list[TokenizedPrompt]:
    draw = random.Random(SEED)
    return [
        TokenizedPrompt(
            token_ids=tuple(draw.randrange(vocabulary) for _ in range(length)), type_ids=()
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", ROUNDS)
def test_growth(name: str, request: pytest.FixtureRequest) -> None:
    """What a token costs as prompts grow longer, and as more of them come at once."""
    folder: Path = request.getfixturevalue(name)
    vocabulary = read_model_config(folder).vocab_size
    resources = Resources(configuration(folder))
    loads = {
        **{("length", n): prompts(GROWTH_TOKENS // n, n, vocabulary) for n in LENGTHS},
        **{("prompts at once", n): prompts(n, NUMBER_LENGTH, vocabulary) for n in NUMBERS},
    }
    ours = Ours(folder, resources)
    products = Products(ours, resources)
    taken: dict[tuple[str, int], list[tuple[float, float]]] = {load: [] for load in loads}
    try:
        for _ in range(ROUNDS[name] + 1):  # the first fills caches
            for load, given in loads.items():
                began = time.perf_counter()
                ours.embed(given)
                between = time.perf_counter()
                products(())
                taken[load].append((between - began, time.perf_counter() - between))
    finally:
        ours.close()
    show(
        f"{name}: growth, {torch.get_num_threads()} threads, median of {ROUNDS[name]} rounds",
        ("what grows", "to", "tokens", "us a token", "products / all"),
        [
            (
                *load,
                tokens := sum(len(prompt.token_ids) for prompt in loads[load]),
                1e6 * median(all_ for all_, _ in times[1:]) / tokens,
                median(part / all_ for all_, part in times[1:]),
            )
            for load, times in taken.items()
        ],
    )
