"""Reads a rules file (TOML). Anything it does not know is an error: a typing mistake in a limit
must not open the gate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from typing import Any

from reports.gate.rules import Limits, Rules, RulesError
from reports.ledger import KnownFinding

VERSION = 1
_TOP = ("version", "limits", "checkpoints", "known")
_KNOWN = ("id", "signature", "owner", "link", "expires", "reason")


def read_rules(path: Path) -> Rules:
    """The rules in `path`. Raises RulesError; OSError where there is no such file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesError(f"{path} is not TOML: {error}") from error
    _only(path, "the file", data, _TOP)
    if data.get("version") != VERSION:
        raise RulesError(f"{path}: version={data.get('version')!r}; this version reads {VERSION}")
    known = data.get("known", [])
    if not isinstance(known, list):
        raise RulesError(f"{path}: known is a list of tables; write [[known]]")
    return Rules(
        source=str(path),
        limits=_limits(path, _table(path, "limits", data.get("limits", {}))),
        checkpoints=_checkpoints(path, _table(path, "checkpoints", data.get("checkpoints", {}))),
        known=tuple(_known(path, number, entry) for number, entry in enumerate(known, start=1)),
    )


def _limits(path: Path, table: Mapping[str, Any]) -> Limits:
    _only(path, "[limits]", table, tuple(f.name for f in fields(Limits)))
    for name, value in table.items():
        where = f"{path}: limits.{name}={value!r}"
        if name == "profiles":
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise RulesError(f"{where} must be a list of profile names")
        elif name == "allow_plants":
            if not isinstance(value, bool):
                raise RulesError(f"{where} must be true or false")
        elif name in ("min_cells", "min_edges"):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise RulesError(f"{where} must be a share from 0 to 1")
        elif not _is_count(value):
            raise RulesError(f"{where} must be a whole number of at least 0")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    return Limits(**values)


def _checkpoints(path: Path, table: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for name, value in table.items():
        section = f"[checkpoints.{name}]"
        own = _table(path, f"checkpoints.{name}", value)
        _only(path, section, own, ("min_cases",))
        least = own.get("min_cases", 1)
        if not _is_count(least):
            raise RulesError(f"{path}: {section} min_cases={least!r} must be a whole number")
        found[name] = least
    return found


def _known(path: Path, number: int, entry: Any) -> KnownFinding:
    where = f"{path}: [[known]] number {number}"
    table = _table(path, f"known {number}", entry)
    _only(path, f"[[known]] number {number}", table, _KNOWN)
    if ("id" in table) == ("signature" in table):
        raise RulesError(f"{where} needs an id or a signature, and not both")
    missing = [name for name in ("owner", "link", "expires") if not table.get(name)]
    if missing:
        raise RulesError(
            f"{where} lacks {', '.join(missing)}: a known finding has an owner, a link to where it "
            "is tracked, and the last day on which it may fail"
        )
    texts = {name: table.get(name, "") for name in _KNOWN if name != "expires"}
    wrong = [name for name, value in texts.items() if not isinstance(value, str)]
    if wrong:
        raise RulesError(f"{where}: {', '.join(wrong)} must be text")
    expires = table["expires"]
    if isinstance(expires, datetime) or not isinstance(expires, date):
        raise RulesError(f"{where}: expires={expires!r} must be a date, such as 2027-01-31")
    if not texts["signature"].strip("* ") and not texts["id"]:
        raise RulesError(f"{where}: signature {texts['signature']!r} would cover every finding")
    return KnownFinding(
        finding_id=texts["id"],
        signature=texts["signature"],
        owner=texts["owner"],
        link=texts["link"],
        reason=texts["reason"],
        expires=expires,
    )


def _table(path: Path, name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RulesError(f"{path}: {name} must be a table, got {type(value).__name__}")
    return value


def _only(path: Path, where: str, table: Mapping[str, Any], valid: tuple[str, ...]) -> None:
    unknown = sorted(set(table) - set(valid))
    if unknown:
        raise RulesError(
            f"{path}: {where} has unknown {', '.join(unknown)}; valid: {', '.join(valid)}"
        )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
