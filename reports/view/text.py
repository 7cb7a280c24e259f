"""Text and numbers as a reader sees them; nothing recorded can act on a screen or a terminal."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping

from harness.record import Json

# Control, format (bidirectional overrides among them), surrogate, private use, unassigned.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}
# Joiners that scripts and emoji need; they move nothing but their neighbours' shapes.
_JOINERS = {"\u200c", "\u200d"}


def visible(text: str) -> str:
    """`text` with every character that could act or hide spelled out; newline and tab stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(character) for character in text)


def _spelled(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    if unicodedata.category(character) in _INVISIBLE:
        return f"\\u{{{ord(character):x}}}"
    return character


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters and a count of what was left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} … ({len(text) - limit:,} more characters)"


def number(value: float) -> str:
    """Three significant digits; whole numbers whole."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    rounded = float(f"{value:.2e}")
    if 1e-3 <= abs(rounded) < 1e6:
        return f"{int(rounded):,}" if rounded == int(rounded) else f"{rounded:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def quantity(value: float, unit: str) -> str:
    """A number with its unit."""
    return f"{number(value)} {unit}".rstrip()


def share_of_bound(value: float, bound: float | None) -> str:
    """`12 % of the bound` or `3.4 times the bound`; empty where there is no bound."""
    if bound is None:
        return ""
    if not math.isfinite(value):
        return "no bound holds it"
    if bound <= 0:
        return "at the bound" if value <= bound else "the bound is 0"
    ratio = value / bound
    return f"{number(ratio)} times the bound" if ratio > 1 else f"{percent(ratio)} of the bound"


def percent(ratio: float) -> str:
    """A share of one, as percent; the space does not break."""
    return f"{number(float(f'{100 * ratio:.2g}'))}\u00a0%"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 pair`, `2,000 pairs`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def seconds(value: float) -> str:
    """A duration: `0.31 s`, `42 s`, `5 min 7 s`."""
    if value < 10:
        return f"{value:.2g} s"
    if value < 100:
        return f"{value:.0f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def plain(value: Json) -> str:
    """Any recorded value on one line: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def flat(settings: Mapping[str, Json], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as `outer.inner`, value rows."""
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            rows += flat(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", plain(value)))
    return rows


def shape(text: str) -> str:
    """`text` with its numbers and quoted or hexadecimal ids masked: reasons alike share a shape."""
    return re.sub(r"\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?(?:e[-+]?\d+)?", "#", text)
