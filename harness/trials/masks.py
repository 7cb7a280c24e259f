"""What may hide a fault: a change to the case, to the cells that are looked at, or to the device.

A fault's record names some of these; `harness.trials.conditions` sees that they really hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from harness.axes import AXES
from harness.case import Case
from harness.search.passes import cut

SHORT = 8
"""Tokens of a prompt that fits one step in every configuration of the profiles."""
FREQUENT = 200
"""Token ids below this are frequent."""
VECTORS = ("embed", "token_embed")
KEEPS_UP = {"stream_policy": "immediate", "inputs": "fenced"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Something under which a fault is said not to show."""

    change: Callable[[Case], Case | None] = lambda case: case
    """The case with the mask on; None where it cannot be put on. Prompts are token ids."""
    axes: tuple[str, ...] = ()
    """Only cells with these axes at their baseline are looked at."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Instead of the profile's own."""

    def looks_at(self, cell: Mapping[str, str]) -> bool:
        """Whether a comparison's side counts."""
        return all(cell.get(name, AXES[name].baseline) == AXES[name].baseline for name in self.axes)


def _one_prompt(case: Case) -> Case:
    return replace(case, prompts=case.prompts[:1], arrivals=case.arrivals[:1])


def _short(case: Case) -> Case:
    return cut(case, range(len(case.prompts)), SHORT)


def _sequence_level(case: Case) -> Case:
    return replace(case, task={"token_embed": "embed"}.get(case.task, case.task))


def _token_level(case: Case) -> Case | None:
    if case.task not in VECTORS:
        return None
    return replace(case, task="token_embed", dimensions=None)


def _embedding(case: Case) -> Case | None:
    return case if case.task in VECTORS else None


def _normalised(case: Case) -> Case | None:
    return replace(case, normalize=True) if case.task in VECTORS else None


def _not_normalised(case: Case) -> Case | None:
    return replace(case, normalize=False) if case.task in VECTORS else None


def _logits(case: Case) -> Case:
    return case if case.task in VECTORS else replace(case, activation=False)


def _full_width(case: Case) -> Case:
    return replace(case, dimensions=None)


def _frequent(case: Case) -> Case:
    return _mapped(case, lambda tokens: tuple(token % FREQUENT for token in tokens))


def _longer_than_one(case: Case) -> Case:
    return _mapped(case, lambda tokens: tokens * 2 if len(tokens) == 1 else tokens)


def _mapped(case: Case, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Case:
    return replace(
        case,
        prompts=tuple(
            prompt if prompt.tokens is None else replace(prompt, tokens=change(prompt.tokens))
            for prompt in case.prompts
        ),
    )


def _two_tokens_last(case: Case) -> Case:
    return _mapped(case, lambda tokens: (*tokens[:-1], tokens[max(len(tokens) - 2, 0)]))


MASKS: Mapping[str, Mask] = {
    "eager execution": Mask(axes=("compile",)),
    "whole prompts": Mask(axes=("chunk",)),
    "sync scheduling": Mask(axes=("async",)),
    "one stage": Mask(axes=("pp",)),
    "sync scheduling on one stage": Mask(axes=("async", "pp")),
    "a device that keeps up": Mask(settings=KEEPS_UP),
    "short prompts": Mask(change=_short),
    "one prompt at a time": Mask(change=_one_prompt),
    "token-level tasks": Mask(change=_token_level),
    "sequence-level tasks": Mask(change=_sequence_level),
    "embeddings": Mask(change=_embedding),
    "normalisation": Mask(change=_normalised),
    "no normalisation": Mask(change=_not_normalised),
    "logits asked for": Mask(change=_logits),
    "full embeddings": Mask(change=_full_width),
    "prompts of frequent tokens": Mask(change=_frequent),
    "whole prompts and no prompt of one token": Mask(change=_longer_than_one, axes=("chunk",)),
    "prompts that end in the same token twice": Mask(change=_two_tokens_last),
}
