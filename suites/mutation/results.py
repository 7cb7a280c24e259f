"""What became of the mutants that were tried: one JSON line each, flushed as they come.

Files of several sessions, one after the other in one file, are the file of them all; where one
mutant was tried twice, the later line counts. A mutant that ran out of time is a survivor: nobody
waits that long for a red test.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from suites.mutation.mutants import Mutant

Outcome = Literal["killed", "survived", "timeout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One mutant, and whether a test noticed."""

    mutant: Mutant
    outcome: Outcome
    seconds: float
    said: str
    """The last lines of the tests: which one failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many of some mutants were noticed."""

    mutants: int
    tried: int
    survivors: tuple[Result, ...]

    @property
    def killed(self) -> int:
        return self.tried - len(self.survivors)

    def __str__(self) -> str:
        share = f" ({100 * self.killed / self.tried:.1f} %)" if self.tried else ""
        late = sum(result.outcome == "timeout" for result in self.survivors)
        beside = f", {late} of the survivors ran out of time" if late else ""
        return (
            f"{self.killed} of {self.tried} tried mutants killed{share}; "
            f"{self.mutants} in all{beside}"
        )


def score(mutants: Sequence[Mutant], results: Iterable[Result]) -> Score:
    """What is known of exactly these mutants; results of other ones, or of older texts, are not."""
    known = {result.mutant: result for result in results}
    tried = [known[mutant] for mutant in mutants if mutant in known]
    survivors = sorted(
        (result for result in tried if result.outcome != "killed"), key=lambda r: r.mutant
    )
    return Score(mutants=len(mutants), tried=len(tried), survivors=tuple(survivors))


def append(path: Path, result: Result) -> None:
    """Write one result at once."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read(path: Path) -> list[Result]:
    """Everything in the file; a last line that was cut off by a kill does not count."""
    if not path.exists():
        return []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return [Result(**{**row, "mutant": Mutant(**row["mutant"])}) for row in rows]
