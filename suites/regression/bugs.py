"""Public bugs that the engine can have: the smallest case of each, and where it shows.

Every entry names the fault of the catalogue that brings the bug back.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from harness.case import Case, Prompt

COPY_LAGS = {"stream_policy": "lag(copy@last)", "inputs": "fenced"}
LAST_LAGS = {"stream_policy": "lag(compute@last)", "inputs": "fenced"}
PACED = {"stream_policy": "paced(1)", "inputs": "fenced"}

CHUNKED = "chunk=chunked"
COMPILED = "compile=compiled"
ASYNC = "async=async"
TWO_STAGES = "pp=2"
PREFIX_CACHE = "prefix_cache=on"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicBug:
    """One report, as the engine can have it."""

    public_id: str
    fault: str
    case: Case
    cell: str = ""
    """`axis=value,...` in which it shows; empty: in every configuration, against float64."""
    settings: Mapping[str, str]
    checkpoint: str = "tiny-qwen3"


def prompts(*lengths: int) -> tuple[Prompt, ...]:
    """Prompts of these many tokens, distinct, the same in every process."""
    draw = random.Random(f"regression {lengths}")
    return tuple(Prompt(tokens=tuple(draw.randrange(5, 250) for _ in range(n))) for n in lengths)


def sharing(prefix: int, *tails: int) -> tuple[Prompt, ...]:
    """Prompts that begin with the same `prefix` tokens, and go on with this many of their own."""
    (first,) = prompts(prefix)
    assert first.tokens is not None
    return tuple(Prompt(tokens=first.tokens + (tail.tokens or ())) for tail in prompts(*tails))


def embed(*lengths: int, normalize: bool = True, dimensions: int | None = None) -> Case:
    """Embeddings of prompts of these lengths."""
    return Case(task="embed", prompts=prompts(*lengths), normalize=normalize, dimensions=dimensions)


def embeds(asked: tuple[Prompt, ...], *, in_turn: bool = False) -> Case:
    """Normalised embeddings of these prompts; `in_turn`: each arrives a step after the last one."""
    arrivals = tuple(range(len(asked))) if in_turn else ()
    return Case(task="embed", prompts=asked, normalize=True, arrivals=arrivals)


def rows(*lengths: int, normalize: bool = False) -> Case:
    """A row for every token."""
    return Case(task="token_embed", prompts=prompts(*lengths), normalize=normalize)


def scores(*lengths: int) -> Case:
    """Scores of ready-made prompts."""
    return Case(task="score", prompts=prompts(*lengths), activation=True)


def _bug(
    public_id: str,
    fault: str,
    case: Case,
    *cell: str,
    settings: Mapping[str, str] = COPY_LAGS,
    checkpoint: str = "tiny-qwen3",
) -> PublicBug:
    return PublicBug(
        public_id=public_id,
        fault=fault,
        case=case,
        cell=",".join(cell),
        settings=settings,
        checkpoint=checkpoint,
    )


BUGS = (
    _bug("vllm#48831", "stale-input-buffer", embed(49), CHUNKED, COMPILED, settings=PACED),
    _bug("vllm#48901", "stale-input-buffer", scores(33), CHUNKED, COMPILED, settings=PACED),
    _bug("Megatron-LM#5715", "never-fenced", embed(17), CHUNKED, settings=LAST_LAGS),
    _bug("ninfer-3090#44", "never-fenced", rows(17), CHUNKED, settings=LAST_LAGS),
    _bug("vllm#25279", "never-fenced", embed(*(2,) * 5), ASYNC),
    _bug("vllm#32799", "never-fenced", embed(*(2,) * 5), TWO_STAGES, settings=LAST_LAGS),
    _bug("vllm#50931", "unowned-token-rows", rows(5, 7, 6, 4, 9), ASYNC),
    _bug("vllm#56666", "stage-skips-poststep", embed(17), CHUNKED, TWO_STAGES),
    _bug("vllm#31570", "counters-on-copy-stream", embed(33), CHUNKED),
    _bug("vllm#53828", "unowned-last-row", embed(5, 7, 6, 4, 9, normalize=False), ASYNC),
    _bug("vllm#29623", "unowned-last-row", embed(*(2,) * 5, normalize=False), ASYNC),
    _bug("vllm#48214", "counters-advance-on-output", embed(17), CHUNKED),
    _bug("pytorch#138908", "async-advances-twice", embed(17, 5, 6, 7), CHUNKED, ASYNC),
    _bug("pytorch#177192", "borrowed-chunk-rows", rows(17), CHUNKED),
    _bug("vllm#41049", "chunk-rows-newest-first", rows(17), CHUNKED),
    _bug("vllm#37873", "slot-not-cleared", embed(*(9,) * 8)),
    _bug("vllm#37884", "slot-not-cleared", embed(*(6,) * 8), checkpoint="tiny-roberta"),
    _bug(
        "vllm#28194",
        "cached-prefix-forgotten",
        embeds(sharing(16, 1, 1), in_turn=True),
        PREFIX_CACHE,
    ),
    _bug(
        "vllm-ascend#7452",
        "cached-prefix-forgotten",
        embeds(prompts(17) * 2, in_turn=True),
        PREFIX_CACHE,
    ),
    _bug("vllm-ascend#12130", "neighbours-blocks", embed(23, 23), CHUNKED),
    _bug("transformers#35911", "last-row-one-early", embed(9)),
    _bug("ml-commons#4744", "last-row-one-early", embed(9, 5)),
    _bug("transformers#46782", "last-row-of-batch", embed(9, 5)),
    _bug("ollama#6187", "answers-swapped", embed(9, 5)),
    _bug("graphiti#1732", "answers-swapped", embed(2, 2), checkpoint="tiny-bert"),
    _bug("xinference#5496", "answers-swapped", scores(2, 2)),
    _bug("DMI#67", "answers-swapped", rows(2, 2)),
    _bug("vllm#36614", "token-rows-shifted", rows(9, 5)),
    _bug("sglang#27343", "one-row-step-repeats", embed(17), CHUNKED),
    _bug("AutoRAG#366", "one-row-step-repeats", rows(1, normalize=True)),
    _bug("imp#548", "chunk-sees-only-itself", embed(17), CHUNKED),
    _bug("sglang#22291", "context-one-short", embed(17), CHUNKED),
    _bug("candle#3567", "sees-next-token", embed(9)),
    _bug("TEI#882", "compiled-sees-next-token", embed(9), COMPILED),
    _bug("sglang#35588", "row-of-neighbour", embed(9, 5)),
    _bug("llama.cpp#13076", "encoder-cut-into-windows", embed(40), checkpoint="tiny-bert"),
    _bug("ollama#14121", "encoder-cut-into-windows", embed(17), checkpoint="tiny-bert"),
    _bug("pegainfer#250", "short-rotary-table", embed(60)),
    _bug("sentence-transformers#3879", "positions-from-batch-row", embed(17), CHUNKED),
    _bug("vllm#33167", "final-norm-skipped", embed(9)),
    _bug("plur#270", "final-norm-skipped", embed(5), checkpoint="tiny-gemma3"),
    _bug("sentence-transformers#3598", "mean-misses-first-token", embed(9), checkpoint="tiny-bert"),
    _bug(
        "sentence-transformers#2569",
        "mean-over-padding",
        embed(9, 5, normalize=False),
        checkpoint="tiny-bert",
    ),
    _bug("omlx#2594", "first-token-for-last", embed(9)),
    _bug("zoteus#51", "first-token-for-last", embeds(sharing(1, 1, 1))),
    _bug("vllm#57498", "average-of-unit-vectors", embed(9)),
    _bug("vllm#33361", "always-normalised", embed(9, normalize=False)),
    _bug("ollama#8094", "always-normalised", embed(5, normalize=False), checkpoint="tiny-bert"),
    _bug("node-llama-cpp#617", "activation-twice", scores(9)),
    _bug("open-webui#20228", "activation-left-out", scores(9)),
    _bug("sentence-transformers#3894", "answers-in-half", embed(9)),
    _bug("infinity#203", "answers-in-half", scores(9)),
    _bug("llama.cpp#9166", "cached-keys-in-bfloat16", embed(17), CHUNKED),
    _bug("pytorch#159239", "compiled-in-bfloat16", embed(9), COMPILED),
    _bug("vllm#56900", "compiled-layer-lost", embed(9), COMPILED),
    _bug("pytorch#183601", "compiled-odd-tail", embed(9), COMPILED),
    _bug("sglang#22427", "graph-bucket-too-small", embed(23), COMPILED),
    _bug("vllm#47644", "first-chunk-received-again", embed(33), CHUNKED, TWO_STAGES),
    _bug("vllm#28899", "third-step-in-flight-mixed", embed(5, 7, 6, 4, 9), ASYNC, TWO_STAGES),
    _bug("vllm#28117", "head-of-zeros", scores(9)),
    _bug("vllm#27857", "head-of-zeros", scores(9, 5)),
    _bug("vllm-metal#738", "dimensions-without-normalising", embed(9, dimensions=32)),
    _bug("dynamo#9722", "dimensions-without-normalising", embed(5, 9, dimensions=16)),
    _bug("sentence-transformers#3787", "suffix-cut", embed(9)),
    _bug("llama.cpp#5496", "rare-tokens-unknown", embed(20)),
    _bug("llama.cpp#24428", "first-token-lost", embed(9), checkpoint="tiny-bert"),
)
