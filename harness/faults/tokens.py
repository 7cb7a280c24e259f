"""Token ids that are not the prompt's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults.base import FaultClass, Undo, planted
from harness.faults.seams import on_stage

if TYPE_CHECKING:  # the table of faults is read without loading torch
    from engine.inputs import InputArrays
    from engine.runner import Runner
    from engine.scheduler.base import ScheduledStep

UNKNOWN, KNOWN = 1, 200


@planted(
    name="suffix-cut",
    kind=FaultClass.TOKENS,
    mechanism="truncation takes the last token, which the template put there to be pooled",
    sources=("sentence-transformers#3787", "llama.cpp#24428"),
    conditions="LAST pooling of two tokens or more",
    masked_by=("prompts that end in the same token twice",),
    magnitude="the hidden state of another token",
)
def suffix_cut(runner: Runner) -> Undo:
    def cut(staging: InputArrays, step: ScheduledStep) -> None:
        row = 0
        for entry in step.plan.entries:
            row += entry.count
            if entry.finishes and entry.count > 1:
                staging["token_ids"][row - 1] = staging["token_ids"][row - 2]

    return on_stage(runner, cut)


@planted(
    name="rare-tokens-unknown",
    kind=FaultClass.TOKENS,
    mechanism=f"ids from {KNOWN} on are taken for unknown",
    sources=("llama.cpp#5496",),
    conditions=f"a prompt with an id of {KNOWN} or more",
    masked_by=("prompts of frequent tokens",),
    magnitude="different texts with the same answer",
)
def rare_tokens_unknown(runner: Runner) -> Undo:
    def hide(staging: InputArrays, step: ScheduledStep) -> None:
        ids = staging["token_ids"][: step.plan.num_tokens]
        ids[ids >= KNOWN] = UNKNOWN

    return on_stage(runner, hide)


@planted(
    name="first-token-lost",
    kind=FaultClass.TOKENS,
    mechanism="the token that opens a prompt is replaced by padding",
    sources=("llama.cpp#24428",),
    conditions="any encoder prompt",
    magnitude="cosine 0.7 to 0.99",
    checkpoint="tiny-bert",
)
def first_token_lost(runner: Runner) -> Undo:
    def lose(staging: InputArrays, step: ScheduledStep) -> None:
        row = 0
        for entry in step.plan.entries:
            if entry.start == 0:
                staging["token_ids"][row] = 0
            row += entry.count

    return on_stage(runner, lose)
