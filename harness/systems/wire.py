"""Bodies and answers of the HTTP interfaces: what is sent, and what an answer must be.

An answer is trusted in nothing. Every list must hold one item for each prompt, under its index, and
every number must be one: null and NaN are refused by place, since a client that fills in or drops
them would compare the wrong rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.case import Case
from harness.judge.output import Output
from harness.record import Json
from harness.systems.base import SystemFailed, SystemUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server calls things, and which it has."""

    normalize: str = ""
    """Parameter that turns L2 normalisation off; empty: it has none."""
    activation: str = ""
    """Parameter that asks for logits instead of scores."""
    tokens: bool = True
    """Whether prompts may be token ids."""
    tasks: tuple[str, ...] = ("embed",)
    score: str = "score"
    """Which interface answers pairs: `score` or `rerank`."""


DIALECTS: Mapping[str, Dialect] = {
    "parity": Dialect(
        normalize="normalize",
        activation="activation",
        tasks=("embed", "token_embed", "classify", "score"),
    ),
    "vllm": Dialect(
        normalize="use_activation",
        activation="use_activation",
        tasks=("embed", "token_embed", "classify", "score"),
    ),
    "openai": Dialect(),
    "cohere": Dialect(tasks=("embed", "score"), score="rerank", tokens=False),
    "jina": Dialect(tasks=("embed", "score"), score="rerank", tokens=False),
    "tei": Dialect(tasks=("embed",), tokens=True),
}


def dialect(name: str) -> Dialect:
    """By name. Raises SystemUnavailable with the valid ones."""
    if name not in DIALECTS:
        raise SystemUnavailable(f"dialect={name!r} is unknown; valid: {', '.join(DIALECTS)}")
    return DIALECTS[name]


def parameters(case: Case, spoken: Dialect) -> dict[str, Json]:
    """The case's parameters in a server's words. Raises SystemFailed for one it does not have."""
    found: dict[str, Json] = {}
    for value, name, what in (
        (case.normalize, spoken.normalize, "normalize"),
        (case.activation, spoken.activation, "activation"),
    ):
        if value is not None and not name:
            raise SystemFailed(f"{what}={value} cannot be asked for in this dialect")
        if value is not None:
            found[name] = value
    if case.dimensions is not None:
        found["dimensions"] = case.dimensions
    return found


def rows(answer: Mapping[str, Json], count: int, *, member: str, listing: str) -> list[Any]:
    """`answer[listing][i][member]` of every prompt, in prompt order. Raises SystemFailed."""
    items = answer.get(listing)
    if not isinstance(items, list):
        raise SystemFailed(f"the answer has no list {listing!r}, only {sorted(answer)}")
    if len(items) != count:
        raise SystemFailed(f"{listing} has {len(items)} items for {count} prompts")
    found: dict[int, Any] = {}
    for place, item in enumerate(items):
        where = f"{listing}[{place}]"
        if not isinstance(item, dict) or member not in item:
            got = sorted(item) if isinstance(item, dict) else type(item).__name__
            raise SystemFailed(f"{where} has no {member!r}: {got}")
        index = item.get("index")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise SystemFailed(f"{where}.index is {index!r}, expected 0 to {count - 1}")
        if index in found:
            raise SystemFailed(f"{where}.index is {index} for the second time")
        found[index] = item[member]
    return [found[index] for index in range(count)]


def array(value: Any, where: str) -> Output:
    """Nested lists of finite numbers as float32. Raises SystemFailed naming the first that is not.

    Every float32, float16 and bfloat16 is a JSON number exactly, so nothing is lost.
    """
    wrong = _not_a_number(value, where)
    if wrong is not None:
        raise SystemFailed(wrong)
    try:
        found = np.array(value, dtype=np.float64)
    except ValueError as error:
        raise SystemFailed(f"{where} is ragged: {error}") from error
    return Output.of(np.atleast_1d(found).astype(np.float32))


def _not_a_number(value: Any, where: str) -> str | None:
    if isinstance(value, list):
        if not value:
            return f"{where} is empty"
        for place, item in enumerate(value):
            wrong = _not_a_number(item, f"{where}[{place}]")
            if wrong is not None:
                return wrong
        return None
    if value is None:
        return f"{where} is null"
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"{where} is {type(value).__name__}, expected a number"
    return None if math.isfinite(value) else f"{where} is {value}"


def check_usage(answer: Mapping[str, Json], expected: int, lengths: Sequence[int]) -> None:
    """The server's token count, where it tells one, must be ours: else it cut or read otherwise."""
    usage = answer.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if isinstance(counted, int) and counted and counted != expected:
        raise SystemFailed(
            f"the server counted {counted} tokens, the checkpoint's tokenizer {expected} "
            f"({', '.join(map(str, lengths))}): it truncates, or tokenizes or renders otherwise"
        )
