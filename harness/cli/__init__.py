"""The `parity` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from harness.cli.folders import home
from harness.registry import RegistryError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; a user's mistake is one message."""
    # Has to be in the environment before anything loads torch (engine.determinism says why).
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
    # Compiled code is kept with the runs, so that it can be cached, moved and deleted with them.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(home().resolve() / "compiled"))
    try:
        from harness.cli.app import run_app
    except RegistryError as error:  # the tables of axes and relations are read at import
        sys.stderr.write(f"parity: {error}\n")
        return 2

    return run_app(list(sys.argv[1:] if arguments is None else arguments))
