"""What a finding's conditions say, by kind: what it takes, where else it fails, where not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reports.view.text import number

_UNDER = (
    (re.compile(r"the same sets also fail under (?P<names>.+)"), True),
    (re.compile(r"does not fail under (?P<names>.+)"), False),
    (re.compile(r"did not fail by chance under (?P<names>.+)"), False),
    (re.compile(r"failed by chance under (?P<names>.+)"), True),
)
_WITH = re.compile(r"fails under (?P<name>.+?) (?P<how>(?:only )?with .+)")
_TRIES = re.compile(r".+: (?:failed within|(?P<quiet>no failure in)) \d+ tries of each cell")
_LIMIT = re.compile(r"limit=(?P<value>\S+) for (?P<cells>.+)")
_OUTPUT = re.compile(r"(?:sequence|token)-level output")
_SETTING = re.compile(r"(?P<name>stream_policy|inputs)=(?P<value>.+)")
_NOTES = re.compile(
    r"shrinking stopped|no budget|did not fail the same way|depends on real concurrency|localised|"
    r"not localised|failed in \d+ of \d+ repeats|fails every time under"
)
SMALLEST, HIDDEN = "smallest case: ", "hidden "


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """A finding's conditions, each under the word that says what it is."""

    requires: tuple[str, ...]
    also_fails: tuple[str, ...]
    passes: tuple[str, ...]
    smallest: tuple[str, ...]
    notes: tuple[str, ...]
    """How it was looked for, and what was not done."""

    @property
    def named(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(Name, what it means, values) of those that say something."""
        rows = (
            ("Requires", "What else the failure needs, apart from the switches.", self.requires),
            ("Also fails under", "Other stream policies that show it too.", self.also_fails),
            ("Passes under", "What was tried and did not show the failure.", self.passes),
            ("Smallest case", "What is left after shrinking.", self.smallest),
            ("Notes", "How it was looked for, and what was not done.", self.notes),
        )
        return tuple(row for row in rows if row[2])


def conditions(recorded: Sequence[str], *, any_policy: bool) -> Conditions:
    """Sort the recorded sentences; one that is not known is something that the failure needs."""
    requires: list[str] = []
    also: list[str] = []
    passes: list[str] = []
    smallest: list[str] = []
    notes: list[str] = []
    settings: dict[str, str] = {}
    for text in map(str, recorded):
        under = next(((m, fails) for rule, fails in _UNDER if (m := rule.fullmatch(text))), None)
        if under is not None:
            (also if under[1] else passes).extend(under[0]["names"].split("; "))
        elif found := _TRIES.fullmatch(text):
            (passes if found["quiet"] else also).append(text)
        elif found := _WITH.fullmatch(text):
            also.append(f"{found['name']} ({found['how']})")
        elif text.startswith(HIDDEN):
            passes.append(text.removeprefix(HIDDEN))
        elif text.startswith(SMALLEST):
            smallest.insert(0, text.removeprefix(SMALLEST))
        elif _OUTPUT.match(text):
            smallest.append(text)
        elif found := _LIMIT.fullmatch(text):
            held = number(float(found["value"]))
            notes.append(f"{found['cells']} were held to {held} in the search")
        elif _NOTES.match(text):
            notes.append(text)
        elif found := _SETTING.fullmatch(text):
            settings[found["name"]] = found["value"]
        else:
            requires.append(text)
    own = _policy(settings)
    if own and any_policy:
        also.insert(0, own)
    elif own:
        requires.insert(0, f"{own}, or one of those below" if also else own)
    return Conditions(
        requires=tuple(requires),
        also_fails=tuple(also),
        passes=tuple(passes),
        smallest=tuple(smallest),
        notes=tuple(notes),
    )


def _policy(settings: dict[str, str]) -> str:
    """`lag(copy@last), fenced inputs`, as the others are named."""
    inputs = settings.get("inputs")
    parts = [settings.get("stream_policy", ""), f"{inputs} inputs" if inputs else ""]
    return ", ".join(filter(None, parts))
