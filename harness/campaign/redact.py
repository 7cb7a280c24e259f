"""Records without the words: a prompt stands in them as a digest and nothing else of it does."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.record import (
    CaseRecord,
    ExecutionRecord,
    FindingRecord,
    NoticeRecord,
    Outcome,
    PairRecord,
    Record,
)

REDACTED = "redacted-"
"""What the digest of a prompt begins with."""
LEFT_OUT = "left out: it may hold a prompt (--redact)"


class Redactor:
    """Owns: the salt of one run, which is written nowhere.

    Equal prompts stay equal within a run, so it can be judged again; nobody can tell a prompt by
    hashing guesses. Outputs are kept: an embedding says something of its prompt.
    """

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)

    def __call__(self, record: Record) -> Record:
        """The record as it may leave the house."""
        match record:
            case CaseRecord():
                return replace(record, case=self._case(record.case))
            case FindingRecord():
                return replace(record, case=self._case(record.case), script=f"# {LEFT_OUT}\n")
            case ExecutionRecord(error=error) if error:
                return replace(record, error=_told(error))
            case PairRecord(outcome=Outcome.ERROR, reason=reason):
                return replace(record, reason=_told(reason))
            case NoticeRecord():
                return replace(record, detail="")
        return record

    def _case(self, case: Mapping[str, Any]) -> dict[str, Any]:
        return {**case, "prompts": [self._prompt(prompt) for prompt in case["prompts"]]}

    def _prompt(self, prompt: Mapping[str, Any] | str) -> dict[str, str]:
        given = {"text": prompt} if isinstance(prompt, str) else prompt
        return {
            "text" if name == "tokens" else name: self._digest(value)
            for name, value in given.items()
        }

    def _digest(self, value: Any) -> str:
        blob = self._salt + json.dumps(value, ensure_ascii=False).encode()
        return REDACTED + hashlib.sha256(blob).hexdigest()[:16]


def _told(message: str) -> str:
    """An error may quote what it was given: its kind and its place are kept."""
    kind = message.partition(":")[0]
    place = message.rpartition("(")[2] if message.endswith(")") else ""
    where = f" ({place}" if place and " " not in place else ""
    return f"{kind}: {LEFT_OUT}{where}"
