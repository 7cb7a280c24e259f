"""Times a newcomer's path on a fresh clone and writes it into the README: `make first-run`.

Clone, environment, first report, and with `--parity` the judgement that takes longer; every cache
starts empty. What was measured goes to docs/first-run.json, and the README's table is made of that
file alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RECORD = Path(__file__).with_name("first-run.json")
BEGIN, END = "<!-- first-run: made by `make first-run` -->", "<!-- end of first-run -->"
UNMEASURED = "Not measured for this state: `make first-run` does it and writes the figures here."
OWN = (
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "PARITY_HOME",
    "PARITY_CACHE",
)
"""Variables of whoever runs this that a newcomer does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that a newcomer does."""

    name: str
    command: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Every step, and what it was measured on."""

    date: str
    commit: str
    machine: str
    packages: str
    """Which torch, and where pip was told to look beside its index."""
    load: float
    """Processes that wanted a core in the minute before, from other work."""
    cores: int
    steps: tuple[Step, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="first_run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--parity", action="store_true", help="also time `make parity` at the end")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter; default: %(default)s"
    )
    parser.add_argument("--in", dest="folder", type=Path, help="folder for the clone; default: new")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="first-run-") as folder:
        measured = measure(Path(folder), python=options.python, parity=options.parity)
    RECORD.write_text(json.dumps(asdict(measured), indent=1) + "\n", encoding="utf-8")
    README.write_text(written(README.read_text(encoding="utf-8"), section(measured)), "utf-8")
    sys.stdout.write(section(measured) + "\n")
    return 0


def measure(
    folder: Path,
    *,
    python: str,
    parity: bool,
    source: Path = ROOT,
    run: Callable[[Sequence[str], Path, Mapping[str, str]], int] | None = None,
) -> Measurement:
    """Do every step in `folder`. RuntimeError names the step that did not end as it should."""
    clone = folder / "pooling-parity"
    environment = {k: v for k, v in os.environ.items() if k not in OWN}
    environment |= {
        "PARITY_HOME": str(folder / "home"),
        "PARITY_CACHE": str(folder / "cache"),
        "PIP_CACHE_DIR": str(folder / "pip"),
    }
    plan: list[tuple[str, list[str], Path]] = [
        ("clone", ["git", "clone", "-q", "--no-local", str(source), str(clone)], folder),
        ("environment", ["make", "setup", f"PYTHON={python}"], clone),
        ("first report", [".venv/bin/parity", "run", "--profile", "smoke"], clone),
    ]
    if parity:
        plan.append(("real checkpoints too", ["make", "parity", f"PYTHON={python}"], clone))
    load = os.getloadavg()[0]
    steps = []
    for name, command, where in plan:
        began = time.perf_counter()
        code = (run or _run)(command, where, environment)
        spent = time.perf_counter() - began
        if code:
            raise RuntimeError(f"{name}: expected exit code 0, got {code} from {command}")
        steps.append(Step(name=name, command=_told(command), seconds=round(spent, 1)))
        if name == "first report" and not list((folder / "home").glob("runs/*/report.html")):
            raise RuntimeError("first report: the run ended well, but wrote no report.html")
    return Measurement(
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(source),
        machine=_machine(python),
        packages=_packages(clone, environment) if run is None else "",
        load=round(load, 1),
        cores=len(os.sched_getaffinity(0)),
        steps=tuple(steps),
    )


def _run(command: Sequence[str], where: Path, environment: Mapping[str, str]) -> int:
    sys.stderr.write(f"--- {_told(command)}\n")
    return subprocess.run(command, cwd=where, env=environment, check=False).returncode


def _told(command: Sequence[str]) -> str:
    """As one types it: without the interpreter's path, and without the folders of this machine."""
    words = [w for w in command if not w.startswith(("PYTHON=", "-q", "--no-local"))]
    if words[:2] == ["git", "clone"]:
        return "git clone URL"
    return " ".join(w.removeprefix(".venv/bin/") for w in words)


def _commit(source: Path) -> str:
    command = ["git", "-C", str(source), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _machine(python: str) -> str:
    """Processor, memory, system and Python of this machine, in words."""
    cpu = _field(Path("/proc/cpuinfo"), "model name") or platform.machine()
    memory = int((_field(Path("/proc/meminfo"), "MemTotal") or "0 kB").split()[0]) * 1024
    told = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    return f"{cpu}, {memory / 1e9:.0f} GB, {platform.system()}, {told.stdout.strip()}"


def _packages(clone: Path, environment: Mapping[str, str]) -> str:
    """In the environment that was made: torch's build, and folders that pip took wheels from."""
    python = str(clone / ".venv/bin/python")
    version = "import importlib.metadata as m; print(m.version('torch'))"

    def told(*command: str) -> str:
        done = subprocess.run(
            [python, *command], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    local = "find-links" in told("-m", "pip", "config", "list") or "PIP_FIND_LINKS" in environment
    where = "pip's index and a local folder of wheels" if local else "pip's index"
    return f"torch {told('-c', version)}; packages from {where}"


def _field(source: Path, name: str) -> str:
    lines = (line.partition(":") for line in source.read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def section(measured: Measurement | None) -> str:
    """What stands between the two marks of the README."""
    return UNMEASURED if measured is None else "\n".join(_lines(measured))


def _lines(measured: Measurement) -> Iterable[str]:
    yield (
        f"Measured on {measured.date} at commit {measured.commit}: {measured.cores} cores of "
        f"{measured.machine}. The clone was from this disk, and every cache was empty; "
        f"{measured.packages}."
    )
    if measured.load > measured.cores / 4:
        yield (
            f"Other work was running (load average {measured.load:g}): an idle machine is faster."
        )
    yield ""
    yield "| step | command | time | since the start |"
    yield "|---|---|---|---|"
    since = 0.0
    for step in measured.steps:
        since += step.seconds
        yield f"| {step.name} | `{step.command}` | {_time(step.seconds)} | {_time(since)} |"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s"


def written(readme: str, text: str) -> str:
    """`readme` with `text` between its marks. ValueError where they are not there once each."""
    for mark in (BEGIN, END):
        if readme.count(mark) != 1:
            raise ValueError(
                f"README.md: expected {mark!r} once, found it {readme.count(mark)} times; put it "
                "on a line of its own where the figures belong"
            )
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def recorded(path: Path = RECORD) -> Measurement | None:
    """The last measurement; None where there is none."""
    if not path.exists():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return Measurement(**{**data, "steps": tuple(Step(**step) for step in data["steps"])})


if __name__ == "__main__":
    sys.exit(main())
