"""Where a case's prompts are changed to prove that its output can move: chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.systems.base import Encoded

PERTURBATIONS = ("first chunk", "middle chunk", "last chunk")
"""Each is one more run of the baseline, with the first token of that chunk replaced."""


def places(name: str, lengths: Sequence[int], chunk: int) -> Mapping[int, int]:
    """Prompt -> index of the token to replace; prompts in which that chunk is another's are left
    out, so a case of short prompts costs one run.

    An encoder is not split, but its prompts have a beginning, a middle and an end as well.
    """
    found = {}
    for prompt, length in enumerate(lengths):
        pieces = -(-length // chunk)
        at = {"first chunk": 0, "middle chunk": pieces // 2, "last chunk": pieces - 1}[name]
        earlier = {"first chunk": (), "middle chunk": (0, pieces - 1), "last chunk": (0,)}[name]
        if length and at not in earlier:
            found[prompt] = at * chunk
    return found


def perturbed(
    name: str, prompts: Sequence[Encoded], chunk: int
) -> tuple[tuple[int, ...], tuple[Encoded, ...]]:
    """The prompts that this perturbation changes, by index, and as they become."""
    chosen = places(name, [len(p.token_ids) for p in prompts], chunk)
    changed = tuple(_replaced(prompts[prompt], token) for prompt, token in chosen.items())
    return tuple(chosen), changed


def _replaced(prompt: Encoded, index: int) -> Encoded:
    """The prompt with the token at `index` replaced by another of its own tokens where it can."""
    tokens = list(prompt.token_ids)
    others = [t for t in tokens if t != tokens[index]]
    tokens[index] = others[0] if others else max(tokens[index] - 1, 0) or tokens[index] + 1
    return Encoded(token_ids=tuple(tokens), type_ids=prompt.type_ids)
