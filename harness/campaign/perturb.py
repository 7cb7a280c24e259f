"""Where a case's prompts are changed to prove that its output can move: chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.systems.base import Encoded

PERTURBATIONS = ("first chunk", "middle chunk", "last chunk")
"""Each is one more run of the baseline, with every token of that chunk replaced: one token alone
moves the answer to a long prompt too little to prove anything (one of 8,051: 0.17 tolerances of
bfloat16)."""
LONE = "other token"
"""One run more, for prompts of one token: with each of several others in its place."""
MOST_OTHERS = 7
"""Others tried for a lone token, beside the one that the first chunk gets."""

Places = tuple[tuple[int, int], ...]
"""(prompt, index of the first token replaced) of each prompt of a perturbed run, in order."""


def places(
    name: str, lengths: Sequence[int], chunk: int, reach: int | None = None
) -> Mapping[int, int]:
    """Prompt -> index of the first token to replace.

    With `reach`, a prompt's last so many tokens are all that its last token can be asked about: the
    first chunk is the first among those.

    Prompts in which that chunk is another's are left out: a case of short prompts costs one run.

    An encoder is not split, but its prompts have a beginning, a middle and an end as well.
    """
    found = {}
    for prompt, length in enumerate(lengths):
        pieces = -(-length // chunk)
        last = pieces - 1
        first = 0 if reach is None else min(last, max(0, -(-(length - reach) // chunk)))
        middle = (first + pieces) // 2
        at = {"first chunk": first, "middle chunk": middle, "last chunk": last}[name]
        earlier = {"first chunk": (), "middle chunk": (first, last), "last chunk": (first,)}[name]
        if length and at not in earlier:
            found[prompt] = at * chunk
    return found


def perturbed(
    name: str, prompts: Sequence[Encoded], chunk: int, reach: int | None = None
) -> tuple[Mapping[int, int], tuple[Encoded, ...]]:
    """What this perturbation changes, as `places` says it; and those prompts as they become."""
    chosen = places(name, [len(p.token_ids) for p in prompts], chunk, reach)
    pool = sorted({token for prompt in prompts for token in prompt.token_ids})
    changed = tuple(
        _replaced(prompts[prompt], first, chunk, pool) for prompt, first in chosen.items()
    )
    return chosen, changed


def lone_tokens(prompts: Sequence[Encoded]) -> tuple[Places, tuple[Encoded, ...]]:
    """Every prompt of one token, once with each of up to `MOST_OTHERS` others in its place.

    Those are spread over the tokens of the case; where it has too few, over the smaller ids, which
    every vocabulary has.
    """
    pool = sorted({token for prompt in prompts for token in prompt.token_ids})
    places, changed = [], []
    for index, prompt in enumerate(prompts):
        if len(prompt.token_ids) == 1:
            for other in _others(prompt.token_ids[0], pool):
                places.append((index, 0))
                changed.append(Encoded(token_ids=(other,), type_ids=prompt.type_ids))
    return tuple(places), tuple(changed)


def _others(token: int, pool: Sequence[int]) -> Sequence[int]:
    others = [other for other in pool if other != token]
    if len(others) < MOST_OTHERS:
        smaller = (token * part // (MOST_OTHERS + 1) for part in range(MOST_OTHERS, 0, -1))
        others += [other for other in smaller if other not in others and other != token]
    step = max(1, len(others) // MOST_OTHERS)
    return tuple(dict.fromkeys(others))[::step][:MOST_OTHERS]


def written(chosen: Places) -> str:
    """Places as a setting of the run has them: `PROMPT:TOKEN`, comma-separated."""
    return ",".join(f"{prompt}:{token}" for prompt, token in chosen)


def read(text: str) -> Places:
    """Inverse of `written`."""
    pairs = (part.split(":") for part in text.split(",") if part)
    return tuple((int(prompt), int(token)) for prompt, token in pairs)


def _replaced(prompt: Encoded, first: int, count: int, pool: Sequence[int]) -> Encoded:
    """The prompt with the tokens from `first` on each made the next of its own distinct tokens.

    Where it has but one, that of the case's `pool` half way round from it: a neighbouring id may
    well be one that the model never learnt to tell from it. A neighbour where there is no other.
    """
    tokens = list(prompt.token_ids)
    own = sorted(set(tokens))
    after = dict(zip(own, own[1:] + own[:1], strict=True))
    if len(own) == 1:
        (token,) = own
        other = pool[(pool.index(token) + max(1, len(pool) // 2)) % len(pool)]
        after = {token: other if other != token else token - 1 if token else 1}
    tokens[first : first + count] = [after[token] for token in tokens[first : first + count]]
    return Encoded(token_ids=tuple(tokens), type_ids=prompt.type_ids)
