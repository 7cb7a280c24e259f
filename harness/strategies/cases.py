"""Cases that aim at boundaries: each is drawn around one class of `lengths.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from harness.case import TASKS, Case, Prompt
from harness.strategies.lengths import (
    CASE_CLASSES,
    DUPLICATES,
    EQUAL_LENGTHS,
    LENGTH_CLASSES,
    SHORT_AND_LONG,
    SINGLE_CHUNK,
    THREE_CHUNKS,
    Edges,
    candidates,
    length_classes,
)
from harness.strategies.texts import CountTokens, text_pairs, texts, utf8_bytes

PAIR_TASKS = ("score",)
"""Tasks whose prompt is a query and a document."""
VECTOR_TASKS = ("embed", "token_embed")
MAX_PAIRS = 3
MIN_STEPS = 3
"""Steps a whole-prefill plan needs for async to act at PP=2: two behind the first output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSpace:
    """What a checkpoint and a profile allow; everything a case is drawn from."""

    tasks: tuple[str, ...]
    vocab_size: int
    edges: Edges
    max_num_seqs: int = 2
    """Prompts of one step."""
    reserved: frozenset[int] = frozenset()
    """Token ids never drawn (special tokens)."""
    texts: bool = True
    """Whether the checkpoint has a tokenizer; `score` needs one."""
    count: CountTokens = utf8_bytes
    """Tokens of a text, special ones included, or an upper bound."""
    pair_overhead: int = 0
    """Tokens the reranker's template adds to query and document."""
    max_case_tokens: int | None = None
    """Tokens of all prompts of a case together."""
    chunkable: bool = True
    """False for encoders: classes about chunks are then not aimed at."""
    dimensions: tuple[int, ...] = ()
    """Shortened embedding sizes that may be asked for."""

    def __post_init__(self) -> None:
        unknown = [task for task in self.tasks if task not in TASKS]
        if unknown or not self.tasks:
            raise ValueError(f"tasks={self.tasks} is not valid; choose from {', '.join(TASKS)}")
        if not self.texts and any(task in PAIR_TASKS for task in self.tasks):
            raise ValueError(f"tasks={self.tasks}: a pair needs texts, and texts=False")
        if len(self.reserved) >= self.vocab_size:
            raise ValueError(f"reserved leaves no token id of vocab_size={self.vocab_size}")

    @property
    def prompt_limit(self) -> int:
        """Longest prompt drawn."""
        if self.max_case_tokens is None:
            return self.edges.max_len
        return min(self.edges.max_len, self.max_case_tokens)

    @property
    def most_prompts(self) -> int:
        """Prompts of a case that fills MIN_STEPS steps of a whole-prefill plan."""
        return (MIN_STEPS - 1) * self.max_num_seqs + 1

    @property
    def classes(self) -> tuple[str, ...]:
        """Boundary classes that cases of this space can hit by their token ids."""
        # Beside the prompt that hits a class, every other one needs a token.
        limit = self.prompt_limit
        if self.max_case_tokens is not None:
            limit = min(limit, self.max_case_tokens - self.most_prompts + 1)
        names = [
            name
            for name in length_classes(self.edges)
            if min(candidates(name, self.edges)) <= limit
            and (self.chunkable or "chunk" not in name)
        ]
        both = SINGLE_CHUNK in names and THREE_CHUNKS in names
        return (*names, *(name for name in CASE_CLASSES if name != SHORT_AND_LONG or both))


def tokens_of(space: CaseSpace, length: int, seed: int) -> tuple[int, ...]:
    """`length` pseudo-random token ids.

    One drawn integer stands for the whole prompt: Hypothesis rejects cases of thousands of draws,
    and token ids are nothing it could shrink better than the project's own reducer.
    """
    generator = random.Random(seed)
    found: list[int] = []
    while len(found) < length:
        token = generator.randrange(space.vocab_size)
        if token not in space.reserved:
            found.append(token)
    return tuple(found)


@st.composite
def cases(
    draw: st.DrawFn, space: CaseSpace, focus: str | None = None, task: str | None = None
) -> Case:
    """A case of the space; `focus` names the class one of its prompts (or all together) hits.

    The length of a pair or a text is what the tokenizer makes of it, so a class of lengths cannot
    be aimed at in a pair task.
    """
    task = task or draw(st.sampled_from(space.tasks))
    focus = focus or draw(st.sampled_from(space.classes))
    count = draw(_prompt_counts(space))
    if task in PAIR_TASKS:  # a template's tokens make every pair long; three still take two steps
        count = min(count, MAX_PAIRS)
    as_text = space.texts and focus not in LENGTH_CLASSES and draw(st.booleans())
    if task in PAIR_TASKS or (as_text and focus == DUPLICATES):
        prompts = draw(_written(space, task, count))
    else:
        lengths = draw(_lengths(space, focus, count))
        prompts = [
            Prompt(tokens=tokens_of(space, n, draw(st.integers(0, 2**31 - 1)))) for n in lengths
        ]
        if space.texts and focus not in CASE_CLASSES and len(prompts) > 1 and draw(st.booleans()):
            # The first prompt carries the focus; a text beside it is company.
            limit = max(1, min(lengths[-1], space.prompt_limit))
            prompts[-1] = Prompt(text=draw(texts(max_tokens=limit, count=space.count)))
    if focus == DUPLICATES:
        prompts[-1] = prompts[0]
    return draw(with_a_head(space, task, prompts))


@st.composite
def with_a_head(draw: st.DrawFn, space: CaseSpace, task: str, prompts: Sequence[Prompt]) -> Case:
    """These prompts under a drawn head.

    Float32 heads, normalisation and activations copy by accident and hide who owns a row, so half
    of all cases run the identity head; dimensions only exist for embeddings.
    """
    plain = draw(st.booleans())
    shorter = st.sampled_from((None, None, None, *space.dimensions))
    return Case(
        task=task,
        prompts=tuple(prompts),
        normalize=(not plain) if task in VECTOR_TASKS else None,
        activation=None if task in VECTOR_TASKS else not plain,
        dimensions=draw(shorter) if task == "embed" and space.dimensions else None,
    )


def _prompt_counts(space: CaseSpace) -> st.SearchStrategy[int]:
    """Mostly enough prompts for three steps, so that steps can overlap at PP=2 as well."""
    enough = space.most_prompts
    fewer = range(min(enough, space.max_num_seqs + 1), enough)
    return st.sampled_from((enough, enough, enough, *fewer))


@st.composite
def _lengths(draw: st.DrawFn, space: CaseSpace, focus: str, count: int) -> list[int]:
    """Lengths of which the first hits `focus`, all within the case's tokens."""
    left = space.max_case_tokens or count * space.edges.max_len
    found: list[int] = []
    twice = focus in (EQUAL_LENGTHS, DUPLICATES)
    for index in range(count - 1 if twice else count):
        # Every prompt still to come gets at least one token.
        limit = min(space.prompt_limit, max(1, left - (count - index - 1)))
        if focus == SHORT_AND_LONG and index < 2:
            name = (THREE_CHUNKS, SINGLE_CHUNK)[index]
        elif index == 0 and focus in LENGTH_CLASSES:
            name = focus
        else:
            name = draw(st.sampled_from(_company(space, limit)))
        if index == 0 and twice:
            limit = max(1, min(limit, left // count))
        fitting = [n for n in candidates(name, space.edges) if n <= limit] or [limit]
        found.append(draw(st.sampled_from(fitting[:_FEW])))
        left -= found[-1] * (2 if index == 0 and twice else 1)
    return [*found, found[0]] if twice else found


_FEW = 24
"""Of a wide class only the shortest members are drawn: a long prompt costs time, not coverage."""


def _company(space: CaseSpace, limit: int) -> list[str]:
    """Classes for the prompts beside the focus: single-chunk and many-chunk ones most of all."""
    names = [name for name in (SINGLE_CHUNK, THREE_CHUNKS) if space.chunkable]
    names = names * 3 + [name for name in space.classes if name in LENGTH_CLASSES]
    return [n for n in names if min(candidates(n, space.edges), default=limit + 1) <= limit] or [
        next(iter(LENGTH_CLASSES))
    ]


@st.composite
def _written(draw: st.DrawFn, space: CaseSpace, task: str, count: int) -> list[Prompt]:
    """Prompts made of text: pairs for pair tasks, else texts."""
    if task in PAIR_TASKS:
        return draw(pairs_of(space, count))
    limit = _share(space, count)
    return [Prompt(text=draw(texts(max_tokens=limit, count=space.count))) for _ in range(count)]


def _share(space: CaseSpace, count: int) -> int:
    """Tokens that each of so many prompts may have."""
    if space.max_case_tokens is None:
        return space.prompt_limit
    return min(space.prompt_limit, max(1, space.max_case_tokens // count))


@st.composite
def pairs_of(draw: st.DrawFn, space: CaseSpace, count: int) -> list[Prompt]:
    """So many queries with documents."""
    inside = max(2, min(_share(space, count), space.edges.max_len - space.pair_overhead))
    pairs = [draw(text_pairs(max_tokens=inside, count=space.count)) for _ in range(count)]
    return [Prompt(query=query, document=document) for query, document in pairs]
