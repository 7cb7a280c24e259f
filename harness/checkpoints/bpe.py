"""A byte-level byte-pair encoding, learnt in plain Python so that no library decides the merges.

The algorithm is the usual one (merge the most frequent adjacent pair, repeat) with ties broken by
the pair itself, hence deterministic. Byte-level means that the alphabet is the 256 bytes, so every
text has a tokenization, and rare scripts simply cost more tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

# A readable cousin of the GPT-2 splitter, used to count words while learning. The published
# tokenizer.json uses the tokenizers library's own ByteLevel splitter; the two agree on the training
# text's words, and where they differ only the learnt merges would, never the round trip.
_WORD = re.compile(r" ?[^\W\d_]+| ?\d+| ?[^\w\s]+|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """A learnt encoding: `pieces` in id order, alphabet first; `merges` in order applied."""

    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


def byte_alphabet() -> dict[int, str]:
    """The printable character that stands for each byte, as every byte-level tokenizer maps them.

    Printable Latin-1 bytes stand for themselves; the other 68 are moved, in order, to U+0100 and up
    (so a space is U+0120).
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = (byte for byte in range(256) if byte not in set(plain))
    return {byte: chr(byte) for byte in plain} | {
        byte: chr(0x100 + place) for place, byte in enumerate(moved)
    }


def learn(text: str, whole_words: tuple[str, ...], size: int) -> Encoding:
    """Learn an encoding of `size` pieces from `text`.

    `whole_words` are learnt first, so each is a single piece. Raises ValueError when the text has
    too few distinct pairs for `size`.
    """
    alphabet = byte_alphabet()
    counts = Counter(_WORD.findall(text))
    first = max(counts.values()) * len(counts)  # outweighs anything the text can add up to
    counts.update(dict.fromkeys(whole_words, first))
    words = {
        tuple(alphabet[byte] for byte in word.encode()): count for word, count in counts.items()
    }
    pieces = [alphabet[byte] for byte in sorted(alphabet, key=alphabet.__getitem__)]
    merges: list[tuple[str, str]] = []
    while len(pieces) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs:
            raise ValueError(
                f"expected training text for {size} pieces, got enough for {len(pieces)}; "
                "give more text or ask for fewer"
            )
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        if (joined := "".join(best)) not in pieces:
            pieces.append(joined)
        words = {_merge(word, best): count for word, count in words.items()}
    return Encoding(pieces=tuple(pieces), merges=tuple(merges))


def _merge(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    merged: list[str] = []
    place = 0
    while place < len(word):
        if word[place : place + 2] == pair:
            merged.append("".join(pair))
            place += 2
        else:
            merged.append(word[place])
            place += 1
    return tuple(merged)
