"""Entries in and out of the text of a rules file; everything else in it stays as it was written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from reports.gate import read_rules
from reports.ledger import KnownFinding

HEAD = "[[known]]"
NEW_FILE = "# Rules of `parity gate`; limits that are not written here are strict.\nversion = 1\n"


def with_entry(text: str, entry: KnownFinding) -> str:
    """The text with one more entry at its end."""
    key, name = ("id", entry.finding_id) if entry.finding_id else ("signature", entry.signature)
    lines = [HEAD, f"{key} = {_quoted(name)}"]
    lines += [f"owner = {_quoted(entry.owner)}", f"link = {_quoted(entry.link)}"]
    lines += [f"expires = {entry.expires.isoformat()}"]
    lines += [f"reason = {_quoted(entry.reason)}"] if entry.reason else []
    return f"{text.rstrip()}\n\n" + "\n".join(lines) + "\n"


def without_entry(text: str, name: str) -> str:
    """The text without the entries that give this id or signature; comments stay."""
    lines = text.splitlines(keepends=True)
    for start, end in reversed(list(_blocks(lines))):
        (found,) = tomllib.loads("".join(lines[start:end]))["known"]
        if name in (found.get("id"), found.get("signature")):
            blank = end < len(lines) and not lines[end].strip()
            del lines[start : end + blank]
    return "".join(lines)


def rewrite(rules: Path, change: Callable[[str], str]) -> None:
    """Change the file's text; it is read back as rules before it takes the old one's place."""
    old = rules.read_text(encoding="utf-8") if rules.exists() else NEW_FILE
    part = rules.with_name(f".{rules.name}.part")
    try:
        part.write_text(change(old), encoding="utf-8")
        read_rules(part)
        part.replace(rules)
    finally:
        part.unlink(missing_ok=True)


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """First line and the one after the last of each entry, without what follows its last key."""
    for start, line in enumerate(lines):
        if line.strip() != HEAD:
            continue
        end = start + 1
        while end < len(lines) and "=" in lines[end] and lines[end].lstrip()[0] not in "#[":
            end += 1
        yield start, end


def _quoted(text: str) -> str:
    """A TOML basic string; its escapes are JSON's, which also covers what a line may not hold."""
    return json.dumps(text)
