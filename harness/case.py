"""A case: what is asked of every system under test. Frozen, JSON, identified by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

TASKS = ("embed", "classify", "score", "token_embed", "token_classify")


class CaseError(ValueError):
    """A case (from a file, a command line or a strategy) is not one that can be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Exactly one of: `text`; `tokens` (ids, no tokenizer involved); `query` and `document`."""

    text: str | None = None
    tokens: tuple[int, ...] | None = None
    query: str | None = None
    document: str | None = None

    def __post_init__(self) -> None:
        given = (
            self.text is not None,
            self.tokens is not None,
            self.query is not None or self.document is not None,
        )
        if sum(given) != 1 or (self.query is None) != (self.document is None):
            raise CaseError(
                "a prompt is exactly one of text, tokens, or query with document; got "
                f"{sorted(f.name for f in fields(self) if getattr(self, f.name) is not None)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Prompts run together, their task and parameters, and when each arrives."""

    task: str
    """One of TASKS; `score` is a pair judged by a reranker (logits first)."""
    prompts: tuple[Prompt, ...]
    normalize: bool | None = None
    activation: bool | None = None
    dimensions: int | None = None
    arrivals: tuple[int, ...] = ()
    """Step before which each prompt arrives; empty: all before the first."""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise CaseError(f"task={self.task!r} is unknown; valid: {', '.join(TASKS)}")
        if not self.prompts:
            raise CaseError("a case needs at least one prompt, got none")
        if self.arrivals and len(self.arrivals) != len(self.prompts):
            raise CaseError(
                f"arrivals has {len(self.arrivals)} entries for {len(self.prompts)} prompts; "
                "give one per prompt or none"
            )

    @property
    def case_id(self) -> str:
        """Content hash: the same case has the same id on every machine and in every run."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Plain data; fields at their default are left out, so ids survive new fields."""
        data: dict[str, Any] = {
            "task": self.task,
            "prompts": [
                {
                    f.name: list(v) if isinstance(v, tuple) else v
                    for f in fields(p)
                    if (v := getattr(p, f.name)) is not None
                }
                for p in self.prompts
            ],
        }
        for name in ("normalize", "activation", "dimensions"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        if self.arrivals:
            data["arrivals"] = list(self.arrivals)
        return data


def case_from_json(data: Mapping[str, Any]) -> Case:
    """Inverse of `Case.to_json`. Raises CaseError naming the offending key and the valid ones."""
    if not isinstance(data, Mapping):
        raise CaseError(f"a case is a JSON object, got {type(data).__name__}")
    known = {"task", "prompts", "normalize", "activation", "dimensions", "arrivals"}
    unknown = sorted(set(data) - known)
    if unknown:
        raise CaseError(f"unknown key {unknown} in a case; valid: {sorted(known)}")
    prompts = data.get("prompts")
    if not isinstance(prompts, Sequence) or isinstance(prompts, str):
        raise CaseError(f"prompts must be a list, got {type(prompts).__name__}")
    for name in ("normalize", "activation"):
        if not isinstance(data.get(name), bool | None):
            raise CaseError(f"{name}={data[name]!r} is not true, false or null")
    dimensions, arrivals = data.get("dimensions"), data.get("arrivals", ())
    if dimensions is not None and not _is_whole(dimensions):
        raise CaseError(f"dimensions={dimensions!r} is not a whole number")
    if not isinstance(arrivals, list | tuple) or not all(_is_whole(a) and a >= 0 for a in arrivals):
        raise CaseError(f"arrivals={arrivals!r} must be whole numbers of at least 0")
    return Case(
        task=str(data.get("task", "")),
        prompts=tuple(_prompt(p, i) for i, p in enumerate(prompts)),
        normalize=data.get("normalize"),
        activation=data.get("activation"),
        dimensions=dimensions,
        arrivals=tuple(arrivals),
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _prompt(data: Any, index: int) -> Prompt:
    if isinstance(data, str):
        return Prompt(text=data)
    if not isinstance(data, Mapping):
        raise CaseError(f"prompt {index} is a string or an object, got {type(data).__name__}")
    unknown = sorted(set(data) - {"text", "tokens", "query", "document"})
    if unknown:
        raise CaseError(
            f"prompt {index} has unknown key {unknown}; valid: text, tokens, query, document"
        )
    for name in ("text", "query", "document"):
        if not isinstance(data.get(name), str | None):
            raise CaseError(
                f"prompt {index}: {name} must be a string, got {type(data[name]).__name__}"
            )
    tokens = data.get("tokens")
    if not isinstance(tokens, list | tuple | None):
        raise CaseError(f"prompt {index}: tokens must be a list, got {type(tokens).__name__}")
    if tokens is not None and not all(_is_whole(token) for token in tokens):
        raise CaseError(f"prompt {index}: tokens must be whole numbers")
    return Prompt(
        text=data.get("text"),
        tokens=None if tokens is None else tuple(tokens),
        query=data.get("query"),
        document=data.get("document"),
    )
