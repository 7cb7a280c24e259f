"""`python -m reports RUN_FOLDER [-o FILE]`: print a run's summary and write its HTML report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from harness.record import RecordError
from reports.html import render
from reports.load import load_run
from reports.terminal import print_summary
from reports.view.text import visible

UNREADABLE = 2
"""Exit code of misuse, as everywhere on the command line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when the report was written, whatever its verdict; 2 when it could not be."""
    parser = argparse.ArgumentParser(prog="python -m reports", description=main.__doc__)
    parser.add_argument("run", type=Path, metavar="RUN_FOLDER", help="folder with run.json")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: report.html in the run folder"
    )
    options = parser.parse_args(arguments)
    try:
        run = load_run(options.run)
        path = render(run, options.output or options.run / "report.html")
    except (RecordError, OSError) as error:
        Console(stderr=True).print(Text(visible(f"reports: {error}")))
        return UNREADABLE
    console = Console()
    print_summary(run, console)
    console.print(Text(visible(f"report: {path}")), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
