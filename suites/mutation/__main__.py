"""`make mutants`: begins a session, or goes on with the one that was stopped."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from suites.mutation.mutants import COMPARATORS, in_any_order, judge_modules, mutants_of
from suites.mutation.results import Result, append, read, score
from suites.mutation.session import SessionError, try_all


def main() -> int:
    """Try what was not tried yet; then the survivors and two scores."""
    parser = argparse.ArgumentParser(prog="python -m suites.mutation", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds results.jsonl, and `site` with cosmic-ray")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--module", action="append", help="of these modules only (names, no path)")
    parser.add_argument("--most", type=int, help="try at most so many")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument("--score", action="store_true", help="try nothing, tell what is known")
    told = parser.parse_args()
    root, folder = Path.cwd(), told.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "site").is_dir():
        sys.path.append(str(folder / "site"))
    modules = judge_modules(root)
    if told.module:
        modules = [m for m in modules if Path(m).stem in told.module]
    if not modules:
        parser.error(
            f"expected modules of {', '.join(Path(m).stem for m in judge_modules(root))}, "
            f"got {', '.join(told.module or ())}"
        )
    mutants = [mutant for module in modules for mutant in mutants_of(root, module)]
    path = folder / "results.jsonl"
    known = {result.mutant: result for result in read(path)}
    if not told.score:
        ended = [m for m in mutants if m in known and not told.again]
        ended += [m for m in mutants if told.again and m in known and known[m].outcome == "killed"]
        todo = in_any_order([m for m in mutants if m not in set(ended)])[: told.most]
        counts: Counter[str] = Counter()

        def note(result: Result) -> None:
            append(path, result)
            counts[result.outcome] += 1
            number = counts.total()
            if number % 25 == 0 or number == len(todo):
                _tell(f"{number} of {len(todo)}: {dict(counts)}")

        try:
            try_all(root, folder, todo, jobs=max(1, min(told.jobs, len(todo))), note=note)
        except KeyboardInterrupt:
            _tell("stopped; the same command goes on from here")
        except SessionError as error:
            _tell(f"cannot go on: {error}")
            return 2
    results = read(path)
    for result in score(mutants, results).survivors:
        late = " (ran out of time)" if result.outcome == "timeout" else ""
        _tell(f"{result.mutant}{late}")
    comparators = [m for m in mutants if m.module in COMPARATORS]
    for module in modules:
        _tell(f"{module}: {score([m for m in mutants if m.module == module], results)}")
    _tell(f"comparators: {score(comparators, results)}")
    _tell(f"judge: {score(mutants, results)}")
    return 0


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
