"""The prompts of a finding's shrunk case, and how far apart the two runs are along them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.record import FindingRecord, Json
from reports.view.text import number, plain, plural, shortened, visible

MAX_PROMPT_CHARACTERS = 600

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """One prompt of the shrunk case, and its error along the tokens where it is known."""

    index: int
    text: str
    errors: tuple[float, ...]
    """Relative L2 of each token row."""
    cosines: tuple[float, ...]
    """1 - cosine of each token row; empty where it was not recorded."""
    layers: tuple[tuple[float, ...], ...]
    """Per layer (0 = embedding output), relative L2 of each token row."""
    pieces: tuple[str, ...]
    """The text of each token, where the system told it."""
    edges: tuple[int, ...]
    """Token positions at which a chunk begins."""
    diverges_at: int | None
    agreement: str
    """What the tokens before the first difference show; empty where that is not known."""


def prompt_views(finding: FindingRecord) -> list[PromptView]:
    recorded = finding.case.get("prompts")
    prompts: list[Json] = list(recorded) if isinstance(recorded, list | tuple) else []
    views = []
    for i in range(max(len(prompts), len(finding.token_errors))):
        errors = finding.token_errors[i] if i < len(finding.token_errors) else ()
        first = finding.first_divergence
        views.append(
            PromptView(
                index=i,
                text=prompt_text(prompts[i]) if i < len(prompts) else "",
                errors=tuple(map(float, errors)),
                cosines=_at(finding.token_cosines, i),
                layers=_at(finding.layer_errors, i),
                pieces=_at(finding.token_texts, i),
                edges=_at(finding.chunk_edges, i),
                diverges_at=first.token if first is not None and first.prompt == i else None,
                agreement=agreement(finding, i),
            )
        )
    # The prompt with the largest error comes first; the rest keep their order.
    return sorted(views, key=lambda p: -_largest(p.errors))


def agreement(finding: FindingRecord, prompt: int) -> str:
    """Whether tokens before the first difference agree: to the last bit, or but for rounding."""
    first, errors = finding.first_divergence, _at(finding.token_errors, prompt)
    if first is None or first.prompt != prompt or not 0 < first.token < len(errors):
        return ""
    top = _largest(errors[: first.token])
    one = first.token == 1
    before = "token 0" if one else f"tokens 0 to {first.token - 1:,}"
    differs = "differs" if one else "differ"
    if top <= 0:
        same = f"{before} {'agrees' if one else 'agree'} to the last bit"
        return f"Token {first.token:,} is the first that differs; {same}."
    if finding.bound is not None and top <= finding.bound:
        return (
            f"Token {first.token:,} is the first beyond the bound; {before} {differs} only by "
            f"rounding (at most {number(top)})."
        )
    return (
        f"Token {first.token:,} is where they part; by the last layer {before} "
        f"{differs} too, by up to {number(top)}."
    )


def _at(rows: tuple[tuple[T, ...], ...], index: int) -> tuple[T, ...]:
    return rows[index] if index < len(rows) else ()


def _largest(errors: Sequence[float]) -> float:
    return max((math.inf if math.isnan(e) else e for e in errors), default=-1.0)


def prompt_text(prompt: Json) -> str:
    """A prompt as a reader sees it, shortened; token ids as their list."""
    if isinstance(prompt, Mapping):
        if isinstance(prompt.get("tokens"), list | tuple):
            ids = [str(t) for t in prompt["tokens"]]
            text = f"{plural(len(ids), 'token id')}: {', '.join(ids)}"
        else:
            parts = [f"{key}: {plain(value)}" for key, value in prompt.items()]
            text = "\n".join(parts) if len(parts) > 1 else plain(next(iter(prompt.values()), ""))
    else:
        text = plain(prompt)
    return shortened(visible(text), MAX_PROMPT_CHARACTERS)
