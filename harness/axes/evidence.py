"""Reading a run witness: the mechanism's own counts, never a configuration (law 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Any


class EvidenceError(LookupError):
    """A witness does not tell what an axis has to know; the axis is then not witnessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A witness as plain data: `chunks {request: pieces}`, `ranks [{pid, operations, ...}]`, ...

    Sums over ranks are taken here. The `derived` block of a witness is for people: it could
    disagree with the ranks it was computed from.
    """

    witness: Mapping[str, Json]

    def _get(self, data: Mapping[str, Json], key: str, where: str) -> Json:
        if data.get(key) is None:
            raise EvidenceError(f"the witness does not tell {where}{key!r}")
        return data[key]

    def value(self, key: str) -> Json:
        """One top-level entry. Raises EvidenceError."""
        return self._get(self.witness, key, "")

    @property
    def ranks(self) -> Sequence[Mapping[str, Json]]:
        """Every rank's account, in rank order. Raises EvidenceError when there is none."""
        ranks: Sequence[Mapping[str, Json]] = self.value("ranks")
        if not ranks:
            raise EvidenceError("the witness names no rank")
        return ranks

    @property
    def active_ranks(self) -> Sequence[Mapping[str, Json]]:
        """Ranks that executed at least one operation."""
        return [r for r in self.ranks if int(self._get(r, "operations", "a rank's ")) > 0]

    def counts(self, key: str) -> list[int]:
        """One count of each active rank. Raises EvidenceError."""
        return [int(self._get(rank, key, "a rank's ")) for rank in self.active_ranks]

    def tallies(self, key: str) -> list[Mapping[str, int]]:
        """One count by name of each active rank. Raises EvidenceError."""
        return [self._get(rank, key, "a rank's ") for rank in self.active_ranks]

    @property
    def summands_each(self) -> int:
        """Summands of each sum over tensor ranks; 1 when no rank summed, or has such a count.

        Raises EvidenceError when it is not the same number on every active rank.
        """
        found = set()
        for rank in self.active_ranks:
            sums, summands = int(rank.get("reductions") or 0), int(rank.get("summands") or 0)
            if sums and summands % sums:
                raise EvidenceError(f"a rank added {summands} summands in {sums} sums")
            found.add(summands // sums if sums else 1)
        if len(found) > 1:
            raise EvidenceError(f"sums of {sorted(found)} summands, expected as many on every rank")
        return found.pop() if found else 1

    def memory(self, key: str) -> Json:
        """One count of the KV memory's ledger. Raises EvidenceError."""
        return self._get(self.value("memory"), key, "its memory's ")

    @property
    def max_chunks(self) -> int:
        """Pieces of the prompt that was split most; 0 when no prompt was executed."""
        chunks: Mapping[str, int] = self.value("chunks")
        return max((int(pieces) for pieces in chunks.values()), default=0)

    @property
    def lookahead(self) -> int:
        """Steps submitted behind an output-bearing, unfinished step, as the last rank saw it."""
        return int(self._get(self.ranks[-1], "lookahead", "the last rank's "))


def explain(check: Callable[[Evidence], str | None], witness: Mapping[str, Json]) -> str | None:
    """The check's reason, or what the witness fails to tell."""
    try:
        return check(Evidence(witness=witness))
    except EvidenceError as missing:
        return str(missing)
