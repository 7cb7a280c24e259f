"""`make mutants`: begins a session, or goes on with the one that was stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from suites.mutation.session import COMPARATORS, CONFIGURATION, TESTS, score, without_annotations


def main(folder: Path) -> int:
    """`folder` holds `site` (cosmic-ray) and `tree` (a checkout that is changed in place)."""
    site, tree = folder / "site", folder / "tree"
    session, configuration = folder / "session.sqlite", folder / "cosmic-ray.toml"
    path = os.pathsep.join((str(tree), str(site)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def cosmic_ray(verb: str) -> None:
        command = [sys.executable, "-m", "cosmic_ray.cli", verb, str(configuration), str(session)]
        subprocess.run(command, cwd=tree, env=environment, check=True)

    if not session.exists():
        configuration.write_text(
            CONFIGURATION.format(
                modules=", ".join(f'"{module}"' for module in COMPARATORS),
                python=sys.executable,
                tests=" ".join(TESTS),
            ),
            encoding="utf-8",
        )
        cosmic_ray("init")
        without_annotations(session)
    try:
        cosmic_ray("exec")
    except KeyboardInterrupt:
        sys.stdout.write("stopped; `make mutants` goes on from here\n")
    found = score(session)
    sys.stdout.write("\n".join([*map(str, found.survivors), str(found)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
