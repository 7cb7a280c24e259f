"""How each state looks in every writer: a shape, a letter and a word, never a colour alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.record import Outcome


class State(StrEnum):
    """An outcome, or why a cell has none."""

    FAIL = "FAIL"
    ERROR = "ERROR"
    VACUOUS = "VACUOUS"
    PASS = "PASS"
    INAPPLICABLE = "INAPPLICABLE"
    REFUSED = "REFUSED"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """`css` is also the class name; `short` fits a map cell."""

    css: str
    glyph: str
    letter: str
    word: str
    short: str
    meaning: str


LOOKS: dict[State, Look] = {
    State.FAIL: Look(
        css="fail",
        glyph="✕",
        letter="F",
        word="FAIL",
        short="FAIL",
        meaning="Both sides ran and their answers differ by more than the bound allows.",
    ),
    State.ERROR: Look(
        css="error",
        glyph="!",
        letter="E",
        word="ERROR",
        short="ERROR",
        meaning="A side crashed, hung or was refused, or the two sides cannot attest what they "
        "must share. Nothing is known about the answers.",
    ),
    State.VACUOUS: Look(
        css="vacuous",
        glyph="∅",
        letter="V",
        word="VACUOUS",
        short="VACUOUS",
        meaning="The comparison proves nothing: a switch should have acted and did not, nothing "
        "was compared, or the model's output does not depend on its input.",
    ),
    State.PASS: Look(
        css="pass",
        glyph="✓",
        letter="P",
        word="PASS",
        short="PASS",
        meaning="The answers agree within the bound, at least one number was compared, and every "
        "switch that differs is proved to have acted.",
    ),
    State.INAPPLICABLE: Look(
        css="inapplicable",
        glyph="–",
        letter="I",
        word="INAPPLICABLE",
        short="N/A",
        meaning="Known before the run: the switch cannot act on this case, so there is nothing to "
        "compare. Example: a prompt of one token cannot be split.",
    ),
    State.REFUSED: Look(
        css="refused",
        glyph="⊘",
        letter="R",
        word="REFUSED",
        short="refused",
        meaning="The engine refuses to start in this configuration and says why.",
    ),
    State.ABSENT: Look(
        css="absent",
        glyph="·",
        letter="·",
        word="NOT RUN",
        short="not run",
        meaning="No comparison of this configuration is recorded.",
    ),
}

SEVERITY: tuple[State, ...] = tuple(State)
"""Worst first."""


def state_of(outcome: Outcome) -> State:
    return State(str(outcome))


def worst(outcomes: Iterable[Outcome]) -> State:
    """The most severe of `outcomes`; ABSENT for none."""
    return min((state_of(o) for o in outcomes), key=SEVERITY.index, default=State.ABSENT)
