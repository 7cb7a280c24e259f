"""Cases in which every switch of a decoder can act, whichever of them are varied together.

Two long prompts, which do not fit a small pool of KV blocks together; two that begin as the first
does, over more than a block, in a later step; and behind them prompts of one block, several steps
of which fit the small pool at once, so that steps can overlap there too. They fill their block: a
prefix cache hands out a block that is filled in part before any other.
"""

from __future__ import annotations

from hypothesis import strategies as st

from harness.case import Case, Prompt
from harness.strategies.cases import PAIR_TASKS, CaseSpace, pairs_of, tokens_of, with_a_head
from harness.strategies.lengths import LENGTH_CLASSES, candidates

STEPS_OF_SHORT = 3
"""Steps that short prompts fill: as many as two pipeline stages and async have in flight."""
PAIRS = 5
"""Every pair begins as its template does."""


@st.composite
def switching_cases(draw: st.DrawFn, space: CaseSpace, task: str) -> Case:
    """A case of this task of a space whose prompts may be chunked."""
    if task in PAIR_TASKS:
        prompts = draw(pairs_of(space, PAIRS))
    else:
        prompts = [Prompt(tokens=tokens) for tokens in draw(_prompts(space))]
    return draw(with_a_head(space, task, prompts))


@st.composite
def _prompts(draw: st.DrawFn, space: CaseSpace) -> list[tuple[int, ...]]:
    """Token ids of the prompts, in the order in which they arrive."""
    block, chunk = space.edges.block_size, space.edges.chunk
    short = STEPS_OF_SHORT * space.max_num_seqs
    # A small pool has a block more than the longest prompt: room for all the short ones, and even
    # chunk by chunk not for the two long ones, of which the second has no three blocks less.
    most = max(chunk // block, short - 1)
    first = draw(_at_a_boundary(space, (most - 1) * block + 1, (most + 1) * block))
    second = draw(_at_a_boundary(space, (most - 2) * block + 1, most * block))
    seeds = st.integers(0, 2**31 - 1)
    beginner = tokens_of(space, first, draw(seeds))
    found = [beginner, tokens_of(space, second, draw(seeds))]
    for _ in range(2):
        shared = draw(st.integers(block + 1, 2 * block))
        rest = draw(st.integers(1, block))
        found.append((*beginner[:shared], *tokens_of(space, rest, draw(seeds))))
    found += [tokens_of(space, block, draw(seeds)) for _ in range(short)]
    return found


def _at_a_boundary(space: CaseSpace, least: int, most: int) -> st.SearchStrategy[int]:
    """Lengths from `least` to `most`, each of some class that is there; those of few as often."""
    classes = [
        [n for n in candidates(name, space.edges) if least <= n <= most] for name in LENGTH_CLASSES
    ]
    return st.sampled_from([found for found in classes if found]).flatmap(st.sampled_from)
