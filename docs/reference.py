"""Builds the reference from docstrings, a page for each module: `make reference`.

pdoc by itself leaves out what a package does not name in `__all__`: it is told them all.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pdoc
from pdoc import doc

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("engine", "harness", "reports")
ELSEWHERE = ("harness.systems.vllm.inside",)
"""Runs in vLLM's environment and imports vllm, which is not here."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="reference.py", description=__doc__.split("\n")[0])
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / ".parity/reference", help="default: %(default)s"
    )
    parser.add_argument("--only", default="", help="pages of the modules that begin so")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    names = modules()
    for name in names:
        doc.Module.from_name(name)  # raises if it cannot be loaded, whatever is written below
    # Packages bring some of their modules along.
    warnings.filterwarnings("ignore", message="The module specification")
    wanted = [name for name in names if name.startswith(options.only)]
    pdoc.pdoc(*wanted, output_directory=options.output)
    sys.stdout.write(f"{len(wanted)} modules: {options.output / 'index.html'}\n")
    return 0


def modules() -> list[str]:
    """Every module of ours by name, but what starts a program and what lives elsewhere."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if parts[-1] != "__main__" and not name.startswith(ELSEWHERE):
                found.append(name)
    return found


if __name__ == "__main__":
    sys.exit(main())
