"""Profiles: fixed cases, cells and settings, so that two runs of one name mean the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.campaign.relate import RelationPlan
from harness.checkpoints.catalogue import checkpoint
from harness.relations import RELATIONS
from harness.strategies.lengths import Edges

FENCED_COPY_LAGS: Mapping[str, str] = {"stream_policy": "lag(copy@last)", "inputs": "fenced"}
SETTINGS: tuple[Mapping[str, str], ...] = (
    FENCED_COPY_LAGS,
    {"stream_policy": "paced(1)", "inputs": "fenced"},
    {"stream_policy": "lag(copy@last)", "inputs": "ring"},
    {"stream_policy": "lag(compute@last)", "inputs": "fenced"},
    {"stream_policy": "threaded", "inputs": "fenced"},
    {"stream_policy": "lag(compute@first)", "inputs": "fenced"},
)
"""Rotated over the cases. Every stream lags in turn; async can act where the copy stream does."""


EVERYDAY = RelationPlan(names=tuple(name for name in RELATIONS if name != "soak"))
"""One relation a case: a run or two of a few prompts beside the case's sixteen or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """What a profile does with one checkpoint."""

    name: str
    cases: int
    chunk: int
    max_num_seqs: int
    max_model_len: int
    max_case_tokens: int
    long_cases: int = 0
    """Cases (of `cases`) with one prompt near `max_model_len` instead of `max_case_tokens`."""
    process_cases: int = 0
    """Cases whose PP=2 cells also run with one process a rank."""
    whole_lattice_every: int = 1
    """Every n-th case runs in all cells; the others in the half with one axis, in turn, at rest."""
    shards: int = 1
    """Parts that may run side by side, each in a process of its own."""
    array_cases: int = 0
    """Cases beside `cases` that run in a covering array over all axes instead of the lattice."""
    array_strength: int = 2
    """Values of different axes of which any so many occur together in a cell of the array."""
    array_shards: int = 1
    choice: str = "lattice"
    """Cells of a case: `lattice`, or `alone` (the baseline, each value alone, all together)."""
    block_size: int = 16
    tasks: tuple[str, ...] = ("embed", "token_embed", "score")
    relations: RelationPlan = EVERYDAY

    @property
    def edges(self) -> Edges:
        return Edges(
            chunk=self.chunk,
            budget=self.chunk,
            block_size=self.block_size,
            max_len=self.max_model_len,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named amount of work."""

    name: str
    meaning: str
    checkpoints: tuple[CheckpointPlan, ...]
    stand_ins: tuple[CheckpointPlan, ...] = ()
    """Generated checkpoints that run when real ones are not on this machine."""
    on_request: tuple[CheckpointPlan, ...] = ()
    """Checkpoints that run only when they are named."""
    attempts: int = 30
    """Tries of a cell whose overlap is left to real concurrency. Of 761 such runs beside ten other
    busy processes 137 needed a second try, 41 a fourth, and 8 were not done after five."""
    settings: tuple[Mapping[str, str], ...] = SETTINGS
    fresh_processes: bool = False
    """A new worker process for every shard: races of a process's start are one chance each."""
    timeout_s: float = 300.0
    """One case in one cell; beyond it the system counts as hung."""

    def plan(self, name: str) -> CheckpointPlan:
        """The plan for a checkpoint: its own, else that of a generated one of the same kind."""
        plans = (*self.checkpoints, *self.stand_ins, *self.on_request)
        for plan in plans:
            if plan.name == name:
                return plan
        kind = checkpoint(name).kind
        for plan in plans:
            known = checkpoint(plan.name)
            if known.kind == kind and known.origin == "generated":
                return replace(plan, name=name)
        raise KeyError(name)


def _tiny(name: str, cases: int, process_cases: int = 0, shards: int = 1) -> CheckpointPlan:
    return CheckpointPlan(
        name=name,
        cases=cases,
        chunk=16,
        max_num_seqs=2,
        max_model_len=256,
        max_case_tokens=200,
        process_cases=process_cases,
        shards=shards,
    )


def _encoder(name: str, cases: int, max_model_len: int = 256) -> CheckpointPlan:
    return CheckpointPlan(
        name=name,
        cases=cases,
        chunk=16,
        max_num_seqs=2,
        max_model_len=max_model_len,
        max_case_tokens=200,
        tasks=("embed", "token_embed"),
    )


FAMILIES = (
    *(_tiny(name, 12) for name in ("tiny-llama", "tiny-qwen2", "tiny-mistral")),
    *(_encoder(name, 12) for name in ("tiny-gemma3", "tiny-roberta", "tiny-modernbert")),
    _encoder("tiny-distilbert", 12),
)
"""The other model families: one profile's time is not enough for every one of them."""

SMALL = (replace(_tiny("small-qwen3", 9), chunk=32), _encoder("small-bert", 6))
EVERY_RELATION = RelationPlan(names=tuple(RELATIONS), per_case=2)
NIGHTLY = tuple(
    replace(plan, relations=EVERY_RELATION)
    for plan in (
        CheckpointPlan(
            name="smollm2",
            cases=36,
            chunk=64,
            max_num_seqs=2,
            max_model_len=320,
            max_case_tokens=128,
            long_cases=2,
            shards=3,
            whole_lattice_every=4,
            array_cases=8,
            tasks=("embed", "token_embed", "score", "embed", "token_embed"),
        ),
        replace(_tiny("tiny-qwen3", 330, process_cases=4, shards=6), array_cases=48),
        replace(_tiny("tiny-llama", 240, process_cases=2, shards=4), array_cases=24),
        replace(_tiny("tiny-qwen2", 80, shards=2), array_cases=12),
        replace(_tiny("tiny-mistral", 80, shards=2), array_cases=12),
        replace(_encoder("tiny-bert", 180), shards=2, array_cases=24),
        *(
            replace(_encoder(name, 60), array_cases=12)
            for name in (
                *("minilm", "tiny-gemma3", "tiny-roberta", "tiny-modernbert", "tiny-distilbert"),
            )
        ),
    )
)
"""About 37 judged pairs a decoder case (of 50) and 15 an encoder case (of 22), as `pr` has them.

Of a case in a covering array about 15 and 9."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="smoke",
            meaning="generated checkpoints only; about a minute with a warm compile cache",
            checkpoints=(_tiny("tiny-qwen3", 12), _encoder("tiny-bert", 6)),
            on_request=(*FAMILIES, *SMALL),
        ),
        Profile(
            name="visit",
            meaning="for an engine that takes a minute to start: few cases, every switch",
            checkpoints=(
                replace(_tiny("small-qwen3", 9), chunk=32),
                replace(_encoder("small-bert", 6), choice="alone"),
                replace(_encoder("minilm", 6), choice="alone"),
                replace(_tiny("smollm2", 6), chunk=64, max_case_tokens=128, choice="alone"),
            ),
            on_request=(_tiny("tiny-qwen3", 9), _encoder("tiny-bert", 6), *FAMILIES),
        ),
        Profile(
            name="pr",
            meaning="generated and real checkpoints, processes included; about five minutes",
            checkpoints=(
                CheckpointPlan(
                    name="smollm2",
                    cases=16,
                    chunk=64,
                    max_num_seqs=2,
                    max_model_len=320,
                    max_case_tokens=128,
                    long_cases=1,
                    shards=2,
                    whole_lattice_every=4,
                    # A pair carries the template's 75 tokens: every fifth case is one.
                    tasks=("embed", "token_embed", "score", "embed", "token_embed"),
                ),
                _tiny("tiny-qwen3", 44, process_cases=1, shards=2),
                _encoder("tiny-bert", 30),
                _encoder("minilm", 18),
            ),
            stand_ins=(_tiny("tiny-llama", 35),),
            on_request=(*FAMILIES, *SMALL),
        ),
        Profile(
            name="nightly",
            meaning="every family, soak, a fresh process a shard; about an hour on two cores",
            checkpoints=NIGHTLY,
            fresh_processes=True,
            on_request=SMALL,
        ),
    )
}
