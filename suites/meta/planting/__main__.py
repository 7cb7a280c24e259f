"""`python -m suites.meta.planting [NAME | FILE]...`: plant breaks and say which tests went red."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from suites.meta.breaks import BREAKS
from suites.meta.planting.zygote import zygote


def main(asked: list[str]) -> int:
    """Returns 1 if a break was not noticed."""
    unknown = [a for a in asked if a not in BREAKS and not Path(a).exists()]
    if unknown:
        sys.stderr.write(
            f"expected names of breaks or suite files, got {unknown}; "
            f"breaks: {', '.join(sorted(BREAKS))}\n"
        )
        return 2
    chosen = [
        planted
        for planted in BREAKS.values()
        if not asked
        or planted.name in asked
        or any((planted.suite + "/").startswith(a.rstrip("/") + "/") for a in asked)
    ]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder, zygote() as process:
        for planted in chosen:
            found = process.run(planted.name, Path(folder) / planted.name)
            why = found.why_not_red(planted)
            unnoticed += why is not None
            said = why or f"{planted.name}: {sorted(found.failed.values())} in {planted.red}"
            sys.stdout.write(f"{'NOT RED' if why else 'red'} {found.seconds:5.1f} s {said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - unnoticed} of {len(chosen)} breaks red\n")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
