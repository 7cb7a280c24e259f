"""A run without its prompts, so that a report can leave the house.

Prompts are taken out of the records where they stand, and out of every other text: an engine's
error message may quote what it was given. What a reader needs to judge the run stays: lengths,
tasks, switches, figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from harness.record import Json
from reports.load import Run

SHINGLE = 8
"""Characters of a prompt that are recognised anywhere. Shorter prompts are recognised whole."""
MASK = "[redacted]"
SCRIPT = "# Redacted: the script holds the prompts. It is in the run's own records.\n"


def redacted(run: Run) -> Run:
    """The same run with no prompt text, no token ids of a prompt, and no script."""
    masker = _Masker(_prompt_texts(run))
    bare = replace(
        run,
        cases={k: replace(c, case=_without_prompts(c.case)) for k, c in run.cases.items()},
        findings=tuple(
            replace(
                finding,
                case=_without_prompts(finding.case),
                token_texts=(),
                script=SCRIPT if finding.script else "",
            )
            for finding in run.findings
        ),
    )
    clean: Run = masker.clean(bare)
    return clean


def _without_prompts(case: Mapping[str, Json]) -> Mapping[str, Json]:
    prompts = case.get("prompts")
    count = len(prompts) if isinstance(prompts, list | tuple) else 0
    return {**case, "prompts": [{"text": MASK}] * count}


def _prompt_texts(run: Run) -> frozenset[str]:
    found: set[str] = set()
    cases = [c.case for c in run.cases.values()] + [f.case for f in run.findings]
    for case in cases:
        for prompt in case.get("prompts") or ():
            values = prompt.values() if isinstance(prompt, Mapping) else (prompt,)
            found.update(v for v in values if isinstance(v, str) and v.strip())
            ids = prompt.get("tokens") if isinstance(prompt, Mapping) else None
            if isinstance(ids, list | tuple) and len(ids) > 1:
                # The two ways in which a list of ids gets into a message.
                found.add(", ".join(map(str, ids)))
                found.add(" ".join(map(str, ids)))
    return frozenset(found)


class _Masker:
    """Owns: the pieces of prompts that may not be shown, and what it has already cleaned."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole, self._pieces = set[str](), set[str]()
        for text in texts:
            # As it is, and as a message quotes it.
            for form in {text, repr(text)[1:-1]}:
                if len(form) <= SHINGLE:
                    self._whole.add(form)
                last = len(form) - SHINGLE
                self._pieces.update(form[i : i + SHINGLE] for i in range(last + 1))
        self.text = lru_cache(maxsize=4096)(self._text)

    def clean(self, value: Any) -> Any:
        """`value` with every text in it cleaned, whatever it is made of."""
        if type(value) is str:  # an enumeration's member is a name of ours, and must stay one
            return self.text(value)
        if isinstance(value, Mapping):
            return {_key(k, self): self.clean(v) for k, v in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(self.clean(v) for v in value)
        if is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in fields(value)]
            return replace(value, **{n: self.clean(getattr(value, n)) for n in names})
        return value

    def _text(self, text: str) -> str:
        hidden = [False] * len(text)
        for i in range(len(text) - SHINGLE + 1):
            if text[i : i + SHINGLE] in self._pieces:
                hidden[i : i + SHINGLE] = [True] * SHINGLE
        for word in self._whole:
            at = text.find(word)
            while at >= 0:
                if _stands_alone(text, at, at + len(word)):
                    hidden[at : at + len(word)] = [True] * len(word)
                at = text.find(word, at + 1)
        if not any(hidden):
            return text
        parts = []
        for i, character in enumerate(text):
            if not hidden[i]:
                parts.append(character)
            elif not i or not hidden[i - 1]:
                parts.append(MASK)
        return "".join(parts)


def _key(key: Json, masker: _Masker) -> Json:
    """Keys that are tuples of ids stay what they are."""
    return masker.text(key) if isinstance(key, str) else key


def _stands_alone(text: str, start: int, end: int) -> bool:
    """A short prompt such as `a` is not taken out of every word that holds the letter."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_")
