"""A session: workers side by side, each with a copy of the tree, fed from one list of mutants."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from suites.mutation.mutants import Mutant, mutated
from suites.mutation.results import Result

SECONDS = 15.0
"""What the tests of one mutant may take at least; more where they are slow unchanged."""
COPIED = ("harness", "suites")


class SessionError(RuntimeError):
    """The tests cannot tell anything here; the message says why."""


class Worker:
    """Owns: one copy of the tree and the process that runs tests in it."""

    def __init__(self, root: Path, folder: Path, seconds: float = SECONDS) -> None:
        """Copies `root` to `folder`, anew: a session that was killed may have left a change in it.

        Raises:
            SessionError: The tests fail on the judge as it is, or pass on one that cannot work.
        """
        shutil.rmtree(folder, ignore_errors=True)
        for name in COPIED:
            left_out = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(root / name, folder / name, ignore=left_out)
        environment = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")},
        }
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "suites.mutation.worker", str(folder), str(seconds)],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        right = self.ask({})
        if right["outcome"] != "survived":
            self.close()
            raise SessionError(f"expected green tests on the judge as it is, got: {right['said']}")
        broken = "raise ImportError('changed')\n"
        if self.ask({"module": "harness/judge/metrics.py", "text": broken})["outcome"] != "killed":
            self.close()
            raise SessionError(
                "expected red tests on a judge that cannot be imported, got green ones: the tests "
                "run on another copy of it"
            )

    def try_out(self, mutant: Mutant) -> Result:
        """Run the tests on one mutant."""
        text = (self.folder / mutant.module).read_text(encoding="utf-8")
        changed = mutated(text, mutant)
        if changed is None:
            raise SessionError(f"{mutant}: expected a change, got none; list the mutants again")
        answer = self.ask({"module": mutant.module, "text": changed})
        return Result(mutant=mutant, **answer)

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Hand one line to the worker and wait for its answer."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise SessionError(f"a worker in {self.folder} ended with status {process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process; the copy stays."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


def try_all(
    root: Path,
    folder: Path,
    mutants: Sequence[Mutant],
    *,
    jobs: int,
    note: Callable[[Result], None],
) -> None:
    """Try every mutant, `jobs` at a time. `note` gets each result as it is known, one at a time.

    Raises:
        SessionError: A worker cannot work. What was known by then was noted.
    """
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        waiting.put(mutant)
    lock, failures = threading.Lock(), list[Exception]()

    def work(number: int) -> None:
        try:
            with Worker(root, folder / f"tree-{number}") as worker:
                while not failures:
                    result = worker.try_out(waiting.get_nowait())
                    with lock:
                        note(result)
        except queue.Empty:
            return
        except Exception as failure:  # noqa: BLE001 - told by the thread that began
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
