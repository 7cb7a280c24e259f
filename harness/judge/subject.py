"""What is judged: the facts of a case that do not depend on how it was run, and one run of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.axes import Plan
from harness.case import Case, Prompt
from harness.judge.output import Output, OutputKind, kind_of
from harness.judge.tolerance import BucketKey, length_bucket
from harness.record import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A case on a checkpoint, as far as the judge has to know it."""

    case_id: str
    checkpoint: str
    task: str
    kind: OutputKind
    dtype: str
    """The dtype the model computes in."""
    lengths: tuple[int, ...]
    """Tokens of each prompt."""
    prompts: tuple[Prompt, ...]
    normalize: bool | None = None
    """Whether rows must have norm 1; None: as the oracle has it."""

    def __post_init__(self) -> None:
        if len(self.lengths) != len(self.prompts):
            raise ValueError(
                f"case {self.case_id}: {len(self.lengths)} lengths for {len(self.prompts)} prompts"
            )

    @classmethod
    def of(cls, case: Case, *, checkpoint: str, dtype: str, lengths: Sequence[int]) -> Subject:
        """The subject of a case whose prompts have these lengths in tokens."""
        return cls(
            case_id=case.case_id,
            checkpoint=checkpoint,
            task=case.task,
            kind=kind_of(case.task, activation=case.activation),
            dtype=dtype,
            lengths=tuple(lengths),
            prompts=case.prompts,
            normalize=case.normalize,
        )

    @property
    def kinds(self) -> tuple[OutputKind, ...]:
        """The kinds under which each output is held to a bound of its own."""
        whole = self.kind.whole
        return (self.kind,) if whole is None else (self.kind, whole)

    def key(self, prompt: int, kind: OutputKind | None = None) -> BucketKey:
        """The bucket that one prompt's error belongs to; `kind`: another of `kinds`."""
        return BucketKey(
            self.checkpoint, self.dtype, kind or self.kind, length_bucket(self.lengths[prompt])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One run of a case in one cell: what came out, and what the run attests."""

    execution_id: str
    cell: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    """One per prompt, in the order of the case's prompts; empty when the run failed."""
    witness: Mapping[str, Json] = field(default_factory=dict)
    plan: Plan = ()
    error: str = ""
    """Empty, or the whole message of what went wrong."""
