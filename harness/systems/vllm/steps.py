"""What vLLM's scheduler wrote down of one run: its plan, its overlap, its preemptions and hits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import Json

REPLAYS = "CUDAGraph"
"""Among a rank's calls of compiled code: replays of CUDA graphs that recorded such calls."""
SUMS = ("sums", "summands")
"""A rank's counts of sums over tensor ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The events of one run."""

    plan: tuple[tuple[tuple[str, int, int, int], ...], ...]
    """step -> entry -> (prompt, start, count, total)."""
    lookahead: int
    """Most steps scheduled behind a step that finished a prompt, before its result was back."""
    preemptions: int
    cached: Mapping[str, int]
    """Prompt -> tokens that were not computed, since the prefix cache had them."""
    short: int
    """Steps in which a prompt that had its turn was not given blocks."""
    peak_blocks: int
    """Most KV blocks held once a step was scheduled."""
    num_blocks: int
    """KV blocks there are."""

    @property
    def memory(self) -> dict[str, Json]:
        """What the ledger of KV blocks tells, as the axes of memory read it."""
        return {
            "hit_tokens": dict(self.cached),
            "preemptions": {"all prompts": self.preemptions},
            "short_steps": self.short,
            "peak_blocks": self.peak_blocks,
            "num_blocks": self.num_blocks,
        }


def read_steps(text: str, requests: Sequence[str]) -> Steps:
    """Events of the log that belong to these requests, in the order of the case's prompts."""
    events = [json.loads(line) for line in text.splitlines() if line.strip()]
    prompts = {name: str(index) for index, name in enumerate(requests)}
    plan: list[tuple[tuple[str, int, int, int], ...]] = []
    cached: dict[str, int] = {}
    behind: dict[int, int] = {}
    most, preempted = 0, [0, 0]
    short = held = there = 0
    for event in events:
        if "done" in event:
            behind.pop(event["done"], None)
            continue
        step = tuple(
            (_prompt(name, prompts), int(start), int(count), int(total))
            for name, start, count, total in event["entries"]
        )
        for number in behind:
            behind[number] += 1
        most = max(most, *behind.values(), 0)
        if any(start + count == total for _, start, count, total in step):
            behind[event["step"]] = 0
        for prompt, start, _, _ in step:
            cached.setdefault(prompt, start)
        if not plan:
            preempted[0] = int(event["preempted"])
        preempted[1] = int(event["preempted"])
        short += bool(event["short"])
        held, there = max(held, int(event["held"])), int(event["blocks"])
        plan.append(step)
    return Steps(
        plan=tuple(plan),
        lookahead=most,
        preemptions=preempted[1] - preempted[0],
        cached={prompt: tokens for prompt, tokens in cached.items() if tokens},
        short=short,
        peak_blocks=held,
        num_blocks=there,
    )


def _prompt(name: str, prompts: Mapping[str, str]) -> str:
    """vLLM may add a suffix to a request's id inside."""
    return prompts.get(name) or prompts.get(name.rpartition("-")[0]) or name


def ranks(
    before: Sequence[Mapping[str, Json]],
    after: Sequence[Mapping[str, Json]],
    *,
    lookahead: int,
) -> list[dict[str, Json]]:
    """Each rank's own counts of one run, from its counts before and after it."""
    found = []
    for first, last in zip(before, after, strict=True):
        calls = len(last["rows"]) - len(first["rows"])
        compiled = {
            name: count - first["compiled"].get(name, 0) for name, count in last["compiled"].items()
        }
        sums, summands = (last["sums"].get(n, 0) - first["sums"].get(n, 0) for n in SUMS)
        replays = compiled.get(REPLAYS, 0)
        called = [count for name, count in compiled.items() if name != REPLAYS]
        found.append(
            {
                "rank": last["rank"],
                "pid": last["pid"],
                "steps": calls,
                "operations": calls,
                # A step calls its artefacts or replays a graph of them, never both.
                "compiled_calls": replays + max(called, default=0),
                "compiled_by": compiled,
                "reductions": sums,
                "summands": summands,
                "lookahead": lookahead,
                "num_threads": last["num_threads"],
                "hazards": [],
            }
        )
    return found


def padded(before: Sequence[Mapping[str, Json]], after: Sequence[Mapping[str, Json]]) -> list[int]:
    """Rows of each model call of the first rank; -1 where the call does not tell."""
    return [int(n) for n in after[0]["rows"][len(before[0]["rows"]) :]]
