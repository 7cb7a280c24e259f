"""What an adapter counted while its system ran, told as the witness that the judge reads.

Nothing here may be filled in from a configuration: who cannot count a thing leaves it out, and a
pair that needs it then comes out as VACUOUS or ERROR, never as PASS.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.axes import Plan
from harness.record import Json


@dataclass(slots=True, kw_only=True)
class Account:
    """Owns: the counts of one run, as its adapter makes them."""

    plan: list[list[list[Json]]] = field(default_factory=list)
    """step -> entry -> [prompt, start, count, total], as it was executed."""
    padded_tokens: list[int] = field(default_factory=list)
    """Rows that each step's products had."""
    compiled_calls: int = 0
    graphs: int = 0

    def step(self, entries: Sequence[tuple[int, int, int, int]], *, rows: int) -> None:
        """One forward call that ran: (prompt, start, count, total) of each prompt in it."""
        self.plan.append([[str(p), start, count, total] for p, start, count, total in entries])
        self.padded_tokens.append(rows)

    def witness(self, *, num_threads: int, flags: Mapping[str, str]) -> dict[str, Json]:
        """The witness of a run in this process, by one rank and one step at a time."""
        steps = len(self.plan)
        rank = {
            "rank": 0,
            "pid": os.getpid(),
            "steps": steps,
            "operations": steps,
            "compiled_calls": self.compiled_calls,
            "graphs": self.graphs,
            "lookahead": 0,
            "num_threads": num_threads,
            "hazards": [],
        }
        return witness_of(
            plan=self.plan, padded_tokens=self.padded_tokens, ranks=[rank], flags=flags
        )


def witness_of(
    *,
    plan: Plan,
    ranks: Sequence[Mapping[str, Json]],
    flags: Mapping[str, str],
    padded_tokens: Sequence[int] | None = None,
    isa: str | None = None,
    **more: Any,
) -> dict[str, Json]:
    """A witness from a plan that was executed and each rank's own counts.

    `isa`: the instruction set of the processes that computed; default: this process's.
    """
    pieces = Counter(str(entry[0]) for step in plan for entry in step)
    found: dict[str, Json] = {
        "plan_digest": digest_of(plan),
        "steps": len(plan),
        "chunks": dict(pieces),
        "instruction_set": instruction_set() if isa is None else isa,
        "flags": dict(flags),
        "ranks": [dict(rank) for rank in ranks],
        **more,
    }
    if padded_tokens is not None:
        found["padded_tokens"] = list(padded_tokens)
    return found


def digest_of(plan: Plan) -> str:
    """Equal for two runs whose steps held the same prompts' same tokens."""
    text = json.dumps([[list(entry) for entry in step] for step in plan])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def instruction_set() -> str:
    """The processor's vector instructions as torch sees them."""
    import torch  # noqa: PLC0415 - heavy, and not every adapter computes in this process

    return str(torch.backends.cpu.get_cpu_capability())
