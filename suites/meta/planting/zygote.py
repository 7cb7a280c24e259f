"""A process that has imported torch and forks: each run of a suite file starts warm and unbroken.

Reads one request a line, `{"name": break, "folder": where to put files}`; answers with an
`Outcome`, a line each. It runs no operation of torch itself: threads do not survive a fork.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import Phase, settings

from suites.meta.breaks import BREAKS
from suites.meta.planting.install import ROOT, Planter, hand_down
from suites.meta.planting.outcome import Outcome, Recorder

SECONDS: Final = 280
"""The longest that one run may take; what is left of pytest's own limit is for killing it."""
TAIL: Final = 3000
WARM: Final = ("torch", "transformers", "hypothesis", "tokenizers", "safetensors.torch")
"""What most suite files import, of others; nothing of ours, where breaks are to be planted."""


class Zygote:
    """The process, from outside."""

    def __init__(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        # Fixed cases, and no database: what a broken run found is nothing to try first next time.
        environment |= {"CI": "true", "MKL_CBWR": environment.get("MKL_CBWR", "AUTO,STRICT")}
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(ROOT), environment.get("PYTHONPATH")))
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "suites.meta.planting.zygote"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, folder: Path) -> Outcome:
        """Run the suite file of this break with it planted; `folder` takes temporary files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"name": name, "folder": str(folder)}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"expected an outcome of {name}, got the end of the zygote")
        return Outcome(**json.loads(answer))

    def close(self) -> None:
        """End the process, once its last answer was read."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def zygote() -> Iterator[Zygote]:
    """A zygote for as long as the block runs."""
    process = Zygote()
    try:
        yield process
    finally:
        process.close()


def broken_run(name: str, folder: Path) -> dict[str, Any]:
    """Plant the break of this name in this process and run its test."""
    planted = BREAKS[name]
    planter = Planter(planted.at, lambda: planted.instead)
    recorder = Recorder()

    class Around:
        """What has to be done within pytest's own run."""

        @pytest.hookimpl(trylast=True)
        def pytest_configure(self) -> None:
            """One failing example will do: making it smaller takes a minute at times."""
            usual = settings.get_profile("parity-ci")
            phases = (Phase.explicit, Phase.generate, Phase.target)
            settings.register_profile("broken", parent=usual, phases=phases)
            settings.load_profile("broken")

        def pytest_collection_finish(self) -> None:
            """A module that pytest rewrites, a test file, is imported past the planter."""
            planter.loaded()

    hand_down(os.environ, name, planted.at)
    planter.install()
    started = time.monotonic()
    status = pytest.main(
        [
            f"{planted.suite}::{planted.red}",
            *("-q", "-x", "-m", "", "-p", "no:cacheprovider"),
            *("--basetemp", str(folder / "tests")),
            # What the zygote imports is of others, and none of it asserts on a test's behalf.
            *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
        ],
        plugins=[recorder, Around()],
    )
    seconds = time.monotonic() - started
    return {
        "exit": int(status),
        "failed": recorder.failed,
        "errors": recorder.errors,
        "seconds": round(seconds, 2),
    }


def _forked(name: str, folder: Path) -> Outcome:
    """The outcome of a forked child; one that dies or hangs has no failed test."""
    folder.mkdir(parents=True, exist_ok=True)
    output, answer = folder / "output.txt", folder / "outcome.json"
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for stream, file in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(stream, file)
            answer.write_text(json.dumps(broken_run(name, folder)), encoding="utf-8")
            status = 0
        except BaseException:  # noqa: BLE001 - said in the output, whatever it is
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    deadline = time.monotonic() + SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    if not ended[0]:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    text = output.read_text(encoding="utf-8", errors="replace")[-TAIL:] if output.exists() else ""
    if answer.exists():
        return Outcome(output=text, **json.loads(answer.read_text(encoding="utf-8")))
    how = f"died with status {ended[1]}" if ended[0] else f"did not end within {SECONDS} s"
    return Outcome(exit=-1, failed={}, errors=[f"the run {how}"], output=text, seconds=SECONDS)


def main() -> None:
    """Serve requests until there are no more."""
    for name in WARM:
        importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        found = _forked(asked["name"], Path(asked["folder"]))
        answers.write(json.dumps(asdict(found)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
