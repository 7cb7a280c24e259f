"""Replays what is known before a run's own cases, in a process of its own.

A case that once hung or killed an engine may do so again: then only its own answer is lost.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from harness.campaign.spec import RunSpec
from harness.campaign.worker import begin
from harness.findings import replay_finding
from harness.known_cases import request
from harness.record import KnownCase, Outcome, known_case_from_json, to_json

ROW_S = 60.0
"""For each cell of the truth table, added to what one case of the profile may take."""


class Answer(NamedTuple):
    """What a known case did."""

    fails: bool | None
    """None where it could not be told."""
    note: str = ""
    """Why not. An error's own words may quote a prompt, so only its kind stands here."""


def recall(spec: RunSpec, cases: Sequence[KnownCase], folder: Path) -> Iterator[Answer]:
    """Each case in turn on what `spec` judges; outputs go to the run in `folder`."""
    asked: _Process | None = None
    try:
        for case in cases:
            asked = asked or _Process(spec, folder)
            answer = asked.ask(case)
            if answer is None:
                asked.stop()
                asked, answer = None, Answer(None, "the process that replayed it died or hung")
            yield answer
    finally:
        if asked is not None:
            asked.stop()


class _Process:
    """Owns: the process that replays, and the pipe to it."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self._timeout_s = 2 * spec.profile_object.timeout_s
        context: Any = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=main,
            args=(theirs, json.dumps(spec.to_json()), str(folder)),
            name="parity-recall",
        )
        self._process.start()
        theirs.close()

    def ask(self, case: KnownCase) -> Answer | None:
        """None when the process is lost."""
        patience = self._timeout_s + ROW_S * len(case.finding.truth_table)
        with suppress(EOFError, OSError):
            self._pipe.send_bytes(json.dumps(to_json(case)).encode())
            if self._pipe.poll(patience):
                return Answer(*json.loads(self._pipe.recv_bytes()))
        return None

    def stop(self) -> None:
        """The process ends by itself when its pipe closes, unless it hangs."""
        self._pipe.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def main(connection: Connection, spec_json: str, folder: str) -> None:
    """Entry point of the process; ends when the pipe closes or the driver is gone."""
    begin()
    spec = RunSpec.from_json(json.loads(spec_json))
    while True:
        try:
            case = known_case_from_json(json.loads(connection.recv_bytes()))
            connection.send_bytes(json.dumps(_answer(spec, case, Path(folder))).encode())
        except (EOFError, OSError):
            return


def _answer(spec: RunSpec, case: KnownCase, folder: Path) -> Answer:
    try:
        replayed = replay_finding(request(case, spec), case.finding, folder)
    except Exception as error:  # noqa: BLE001 - whatever a system raises is its answer
        return Answer(None, f"it could not be run: {type(error).__name__}")
    errors = sum(row.outcome is Outcome.ERROR for row in replayed.rows)
    if errors and not replayed.failing:
        return Answer(None, f"{errors} of {len(replayed.rows)} cells of its truth table failed")
    return Answer(replayed.failing)
