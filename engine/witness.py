"""What a run really did, read from the mechanism and never from the configuration (law 1)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from engine.scheduler.memory import MemoryWitness


def _fields_of(witness: RankWitness | RunWitness | MemoryWitness) -> dict[str, object]:
    """As `asdict` has them one level deep, and without a copy of what nobody changes."""
    return {f.name: getattr(witness, f.name) for f in fields(witness)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWitness:
    """One rank's own account of one run."""

    rank: int
    pid: int
    steps: int
    """Steps whose operations this rank executed."""
    operations: int
    """Stream operations executed."""
    cost: int
    """Sum of the operations' costs, in kernels they stand for."""
    compiled_calls: int
    """Calls that ran inside the compiler's own artefact."""
    graphs: int
    """Distinct graphs the compiler has built in this process so far."""
    eager_stages: int
    """Kernel-like stages run outside any compiled artefact."""
    lookahead: int
    """Most steps submitted after an output-bearing step and before it completed."""
    staging_slots: int
    """Different staging buffers that the rank was handed."""
    num_threads: int
    """Intra-op threads seen from inside the compute stream."""
    hazards: tuple[str, ...]
    """Unordered conflicting buffer accesses (the happens-before check)."""
    reductions: int = 0
    """Sums over tensor ranks that this rank computed."""
    summands: int = 0
    """Summands in them, counted as they were added."""
    replays: int = 0
    """Recordings of the stage that were replayed, counted as they were."""
    buckets: tuple[int, ...] = ()
    """Row counts of those recordings."""
    attention_calls: dict[str, int] = field(default_factory=dict)
    """Attention backend -> calls of its function, counted as they were made."""
    padding_rows: int = 0
    """Rows that steps were padded with, in any mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWitness:
    """A whole run: every rank's account plus what all must share to be held to the same bits."""

    plan_digest: str
    steps: int
    chunks: dict[str, int]
    """Request id -> pieces its prompt was executed in, counted by the last rank."""
    padded_tokens: tuple[int, ...]
    """Rows each step's products really had."""
    stream_policy: str
    instruction_set: str
    flags: dict[str, str]
    """Process-wide switches that may change a bit (MKL_CBWR, torch versions, deterministic...)."""
    memory: MemoryWitness
    ranks: tuple[RankWitness, ...]

    @property
    def max_chunks(self) -> int:
        return max(self.chunks.values(), default=0)

    @property
    def compiled_calls(self) -> int:
        return sum(rank.compiled_calls for rank in self.ranks)

    @property
    def eager_stages(self) -> int:
        return sum(rank.eager_stages for rank in self.ranks)

    @property
    def lookahead(self) -> int:
        return self.ranks[-1].lookahead if self.ranks else 0

    @property
    def active_ranks(self) -> int:
        return sum(rank.operations > 0 for rank in self.ranks)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(sorted({rank.pid for rank in self.ranks}))

    @property
    def hazards(self) -> tuple[str, ...]:
        return tuple(f"rank {r.rank}: {h}" for r in self.ranks for h in r.hazards)

    def to_json(self) -> dict[str, object]:
        """Plain data for a record; the derived counts are included so readers need no code."""
        data = _fields_of(self)
        data["memory"] = _fields_of(self.memory)
        data["ranks"] = tuple(map(_fields_of, self.ranks))
        data["derived"] = {
            "max_chunks": self.max_chunks,
            "compiled_calls": self.compiled_calls,
            "eager_stages": self.eager_stages,
            "lookahead": self.lookahead,
            "active_ranks": self.active_ranks,
            "pids": list(self.pids),
            "hazards": list(self.hazards),
        }
        return data
