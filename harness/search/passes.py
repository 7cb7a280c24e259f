"""The passes of the reducer, as verbs. Each proposes smaller cases and keeps what is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.case import Case, Prompt
from harness.search.reducer import Reducer

PLAIN: Final[Mapping[str, Any]] = {
    "arrivals": (),
    "normalize": None,
    "activation": None,
    "dimensions": None,
}
"""What a case says of options that it does not set."""
MAX_ROUNDS = 4
"""A round that changes nothing ends the reduction long before this on every case tried."""


def reduce_case(reducer: Reducer, *, chunk: int) -> Case:
    """Run the passes until none helps or the budget is spent; returns the smallest case.

    `chunk`: the largest piece of a prompt in a chunked cell; its multiples are the lengths at which
    an engine changes what it does. Shape comes before tokens: a prompt of one repeated token hides
    what moves tokens about, so it is tried on the smallest shape only. The passes that look far
    begin again only where a single step less still fails once the tokens are simple.
    """
    for _ in range(MAX_ROUNDS):
        drop_options(reducer)
        drop_prompts(reducer)
        shorten_prompts(reducer, chunk=chunk)
        simplify_tokens(reducer)
        if reducer.exhausted or not one_step_less(reducer):
            return reducer.current
    while not reducer.exhausted and one_step_less(reducer):
        pass
    return reducer.current


def one_step_less(reducer: Reducer) -> bool:
    """Whether an option, a prompt or the last token of a prompt can go: if not, it is 1-minimal."""
    before = reducer.current
    drop_options(reducer)
    for index in reversed(range(len(before.prompts))):
        if len(reducer.current.prompts) > 1:
            reducer.consider(without_prompts(reducer.current, index, index + 1))
    for index in range(len(reducer.current.prompts)):
        if (less := _longest(reducer.current, [index]) - 1) > 0:
            reducer.consider(cut(reducer.current, [index], less))
    return reducer.current != before


def alone(case: Case, index: int) -> Case:
    """Only this prompt of the case, and every option at its default."""
    return replace(case, prompts=case.prompts[index : index + 1], **PLAIN)


def drop_options(reducer: Reducer) -> None:
    """Arrivals and parameters back to their defaults: all of them, else each by itself."""
    if not reducer.consider(replace(reducer.current, **PLAIN)):
        for name, value in PLAIN.items():
            reducer.consider(replace(reducer.current, **{name: value}))


def drop_prompts(reducer: Reducer) -> None:
    """Half of the prompts, a quarter, ... one at a time, from the end."""
    size = len(reducer.current.prompts) // 2
    while size >= 1:
        start = len(reducer.current.prompts) - size
        while start >= 0:
            if len(reducer.current.prompts) > size:
                reducer.consider(without_prompts(reducer.current, start, start + size))
            start -= size
        size //= 2


def shorten_prompts(reducer: Reducer, *, chunk: int) -> None:
    """All prompts together first, then each alone."""
    everyone = range(len(reducer.current.prompts))
    _shorten(reducer, everyone, chunk)
    for index in everyone if len(everyone) > 1 else ():
        _shorten(reducer, [index], chunk)


def _shorten(reducer: Reducer, indices: Sequence[int], chunk: int) -> None:
    """Bisect to a length whose next smaller one was refused; then try those where engines turn.

    Most failures begin with the first token, or where the first chunk is full; these lengths come
    before the middles. Bisection finds the least length where shorter prompts never fail again once
    one does not. Where they do, it is most often around a multiple of the chunk; those lengths are
    tried as well, and the last word is that one token less does not fail.
    """
    _bisect(reducer, indices, first=(1, chunk, chunk + 1))
    for length in boundary_lengths(_longest(reducer.current, indices), chunk):
        if reducer.consider(cut(reducer.current, indices, length)):
            break
    while (less := _longest(reducer.current, indices) - 1) and reducer.consider(
        cut(reducer.current, indices, less)
    ):
        pass


def _bisect(reducer: Reducer, indices: Sequence[int], first: Sequence[int]) -> None:
    """`first`: lengths to try before any middle, ascending."""
    refused, kept = 0, _longest(reducer.current, indices)
    for length in first:
        if refused < length < kept:
            if reducer.consider(cut(reducer.current, indices, length)):
                kept = length
            else:
                refused = length
    while kept - refused > 1:
        middle = (refused + kept) // 2
        if reducer.consider(cut(reducer.current, indices, middle)):
            kept = middle
        else:
            refused = middle


def simplify_tokens(reducer: Reducer) -> None:
    """Every token the same small id; else each prompt's own; else prompt by prompt."""
    prompts = range(len(reducer.current.prompts))
    if reducer.consider(filled(reducer.current, dict.fromkeys(prompts, 1))):
        return
    if reducer.consider(filled(reducer.current, {index: index + 1 for index in prompts})):
        return
    for index in prompts:
        reducer.consider(filled(reducer.current, {index: index + 1}))


def boundary_lengths(below: int, chunk: int) -> Iterator[int]:
    """Lengths around multiples of the chunk, ascending, smaller than `below`."""
    lengths = {1} | {
        multiple + offset
        for multiple in range(chunk, below + chunk, chunk)
        for offset in (-1, 0, 1)
    }
    return iter(sorted(n for n in lengths if 1 <= n < below))


def without_prompts(case: Case, start: int, stop: int) -> Case:
    """The case without prompts [start, stop) and their arrivals."""
    return replace(
        case,
        prompts=case.prompts[:start] + case.prompts[stop:],
        arrivals=case.arrivals[:start] + case.arrivals[stop:],
    )


def cut(case: Case, indices: Sequence[int], length: int) -> Case:
    """The named prompts cut to at most `length` tokens; a text is left as it is."""
    chosen = set(indices)
    return replace(
        case,
        prompts=tuple(
            Prompt(tokens=prompt.tokens[:length])
            if index in chosen and prompt.tokens is not None
            else prompt
            for index, prompt in enumerate(case.prompts)
        ),
    )


def filled(case: Case, ids: dict[int, int]) -> Case:
    """Prompt index -> the one id that all its tokens become; a text is left as it is."""
    return replace(
        case,
        prompts=tuple(
            Prompt(tokens=(ids[index],) * len(prompt.tokens))
            if index in ids and prompt.tokens is not None
            else prompt
            for index, prompt in enumerate(case.prompts)
        ),
    )


def _longest(case: Case, indices: Sequence[int]) -> int:
    return max((len(case.prompts[i].tokens or ()) for i in indices), default=0)
