"""Every command the Makefile calls is one the command line has.

Passes wrongly if every call was taken for one that exists. Ruled out by
`test_a_call_that_does_not_exist_is_seen`.
"""

from __future__ import annotations

import re
from pathlib import Path

import typer

from harness.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
CALL = re.compile(r"\$\(BIN\)/parity (?P<command>\w+)(?P<arguments>(?: +[-\w$()]+)*)")


def unknown_calls(makefile: str) -> list[str]:
    """Commands and options called in the text of a Makefile that do not exist."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    wrong = []
    for call in CALL.finditer(makefile):
        command = commands.get(call["command"])
        if command is None:
            wrong.append(call["command"])
            continue
        options = {option for parameter in command.params for option in parameter.opts}
        given = {word for word in call["arguments"].split() if word.startswith("-")}
        wrong += [f"{call['command']} {option}" for option in sorted(given - options)]
        takes = any(parameter.param_type_name == "argument" for parameter in command.params)
        values = [word for word in call["arguments"].split() if not word.startswith("-")]
        if len(values) > len(given) + takes:
            wrong.append(f"{call['command']}: {values}")
    return wrong


def test_the_makefile_calls_what_there_is() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert len(CALL.findall(makefile)) >= 4
    assert not unknown_calls(makefile)


def test_a_call_that_does_not_exist_is_seen() -> None:
    assert unknown_calls("$(BIN)/parity conjure") == ["conjure"]
    assert unknown_calls("$(BIN)/parity models --get") == ["models --get"]
    assert unknown_calls("$(BIN)/parity models fetch") == ["models: ['fetch']"]
