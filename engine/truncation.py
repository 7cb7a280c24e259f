"""How a prompt that is too long is cut; only where a request asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.errors import RequestError

SIDES: Final = ("left", "right")
MODEL_LENGTH: Final = -1
"""As vLLM has it: cut to what the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """Keep at most `max_tokens`, special ones included; `side` is the one that is cut off."""

    max_tokens: int
    side: str = "right"

    @classmethod
    def asked(cls, max_tokens: int, side: str, max_model_len: int) -> Truncation:
        """What a request asks for. Raises RequestError for a length or side of no use."""
        if side not in SIDES:
            raise RequestError(f"truncation_side={side!r} is not valid: expected one of {SIDES}")
        if max_tokens != MODEL_LENGTH and not 1 <= max_tokens <= max_model_len:
            raise RequestError(
                f"truncate_prompt_tokens={max_tokens} is not valid: expected 1 to {max_model_len}, "
                "or -1 for as many as the model takes"
            )
        kept = max_model_len if max_tokens == MODEL_LENGTH else max_tokens
        return cls(max_tokens=kept, side=side)

    def cut(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """What is kept of a prompt given as token ids, to which no special ones are added."""
        return ids[: self.max_tokens] if self.side == "right" else ids[-self.max_tokens :]
