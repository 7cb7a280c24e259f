"""One copy of the tree in which the judge is changed, and the tests that are run on it.

A worker imports what the tests need from others once (numpy, pytest, Hypothesis) and forks for each
mutant; the child imports the project's own modules anew, the changed one among them. Started as
`python -m suites.mutation.worker TREE SECONDS` it reads one JSON line for each mutant, `{"module":
path, "text": its text}`, and answers with one, `{"outcome": ..., "seconds": ..., "said": ...}`.
A line without a module is the tree as it is.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import pytest

UNIT = "suites/unit/judge"
META = ("suites/meta/test_judge_red.py", "suites/meta/test_judge_evidence.py")
LEFT_OUT = "test_without_torch.py"
"""It starts a Python of its own to see what is imported: two seconds for every survivor, and about
no change that is made here."""
SLOWEST = "test_calibration.py"
CONFIGURATION = "[pytest]\npythonpath = .\nfilterwarnings = error\n"
"""The tests' own, without what needs a plug-in: these tests take no fixture of the project."""
PATIENCE = 8
"""Times of the tests unchanged that a mutant may take, where that is more than asked for."""
UNCHANGED = 300.0
"""Seconds for the tests on the tree as it is."""
MEMORY = 4 * 1024**3
"""Bytes of address space for the tests of one mutant."""


def main(tree: Path, seconds: float) -> int:
    """Serve until the input ends."""
    os.chdir(tree)
    sys.path[:] = [str(tree), *(p for p in sys.path if p not in ("", str(tree)))]
    sys.dont_write_bytecode = True
    (tree / "mutants.ini").write_text(CONFIGURATION, encoding="utf-8")
    preload()
    limit = seconds
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if (module := asked.get("module")) is None:
            answer = unchanged(tree)
            limit = max(seconds, PATIENCE * answer["seconds"])
        else:
            answer = changed(tree, module, asked["text"], limit)
        print(json.dumps(answer), flush=True)  # noqa: T201
    return 0


def preload() -> None:
    """What is slow and not the project's; Hypothesis without dice, store or shrinking."""
    import_module("numpy")
    import_module("hypothesis.strategies")
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("mutants")
    early = [name for name in sys.modules if name == "harness" or name.startswith("harness.")]
    if early:
        raise RuntimeError(
            f"expected no module of the harness before the fork, got {', '.join(early)}: a child "
            f"would test it unchanged"
        )


def unchanged(tree: Path) -> dict[str, Any]:
    """Run the tests on the tree as it is, and write bytecode, so that no mutant pays for the rest.

    The judge's own is thrown away: a change of the same length in the same second would pass for
    it.
    """
    try:
        return _tests(tree, ordered(tree), UNCHANGED, bytecode=True)
    finally:
        shutil.rmtree(tree / "harness" / "judge" / "__pycache__", ignore_errors=True)


def changed(tree: Path, module: str, text: str, seconds: float) -> dict[str, Any]:
    """Run the tests with the module's text changed, and put it back."""
    path = tree / module
    before = path.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    try:
        return _tests(tree, ordered(tree, Path(module).stem), seconds)
    finally:
        path.write_text(before, encoding="utf-8")


def ordered(tree: Path, module: str = "") -> list[str]:
    """The files of tests: a module's own first and slow ones last, since the first red one ends."""
    own, slow = f"test_{module}.py", SLOWEST
    unit = [f.name for f in (tree / UNIT).glob("test_*.py") if f.name != LEFT_OUT]
    unit.sort(key=lambda name: (name != own, name == slow, name))
    return [f"{UNIT}/{name}" for name in unit[:1]] + [*META] + [f"{UNIT}/{n}" for n in unit[1:]]


def _tests(
    tree: Path, files: list[str], seconds: float, *, bytecode: bool = False
) -> dict[str, Any]:
    """The tests in a forked child of its own process group."""
    log, began = tree / "mutants.log", time.monotonic()
    child = os.fork()
    if child == 0:
        _child(log, files, bytecode=bytecode)
    status: int | None = None
    while status is None and time.monotonic() - began < seconds:
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
        if status is None:
            time.sleep(0.01)
    if status is None:
        outcome = "timeout"
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    else:
        outcome = "survived" if status == 0 else "killed"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    spent = round(time.monotonic() - began, 3)
    return {"outcome": outcome, "seconds": spent, "said": "\n".join(lines[-3:])[-400:]}


def _child(log: Path, files: list[str], *, bytecode: bool) -> None:
    """Never returns. Its exit status is pytest's; anything that goes wrong is no success."""
    code = 1
    try:
        os.setpgid(0, 0)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.dont_write_bytecode = not bytecode
        arguments = ["-c", "mutants.ini", "--rootdir=.", "--import-mode=importlib", "--noconftest"]
        arguments += ["-p", "no:cacheprovider", "-q", "-x", "--tb=line"]
        code = int(pytest.main([*arguments, *files]))
        sys.stdout.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), float(sys.argv[2])))
