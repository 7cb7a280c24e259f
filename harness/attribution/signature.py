"""What makes two failures the same finding."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.attribution.sets import Switches
from harness.judge.output import kind_of

ANY_POLICY = "any"
"""Stream policy of a failure that does not depend on it."""
OWN_POLICY = "own"
"""Stream policy of a system whose streams cannot be steered: it runs as it comes."""


class FailureKind(StrEnum):
    """In what way a cell fails."""

    DIFFERENCE = "difference"
    """Numbers or structure differ from the baseline, or along an exact edge."""
    HAZARD = "happens-before"
    """Buffer accesses that nothing orders, whatever came out this time."""
    BASELINE = "baseline"
    """The baseline itself is too far from float64."""
    EXECUTOR = "executor"
    """The same cell differs when its ranks run as processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Failures with equal signatures are one finding."""

    checkpoint: str
    level: str
    """`sequence` or `token`: whether the output's length grows with the prompt."""
    kind: FailureKind
    sets: tuple[Switches, ...]
    """Minimal failing sets, smallest first."""
    policy: str
    """Stream policy with its argument, or ANY_POLICY."""

    def __str__(self) -> str:
        sets = "|".join("&".join(sorted(values)) for values in self.sets)
        return (
            f"checkpoint={self.checkpoint}; level={self.level}; kind={self.kind}; sets={sets}; "
            f"policy={self.policy}"
        )

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Inverse of `str`. ValueError for anything else."""
        parts = dict(part.partition("=")[::2] for part in text.split("; "))
        missing = {"checkpoint", "level", "kind", "sets", "policy"} - set(parts)
        if missing:
            raise ValueError(f"{text!r} is not a finding's signature: it lacks {sorted(missing)}")
        return cls(
            checkpoint=parts["checkpoint"],
            level=parts["level"],
            kind=FailureKind(parts["kind"]),
            sets=tuple(
                frozenset(filter(None, values.split("&"))) for values in parts["sets"].split("|")
            ),
            policy=parts["policy"],
        )

    @property
    def finding_id(self) -> str:
        """The same failure has the same id in every run."""
        return "F-" + hashlib.sha256(str(self).encode()).hexdigest()[:10]


def level_of(task: str) -> str:
    """`sequence` or `token`."""
    return "token" if kind_of(task).token_level else "sequence"


def is_racy(settings: Mapping[str, str], kind: FailureKind) -> bool:
    """Whether the same run may come out otherwise: real threads, and a failure seen by luck."""
    threaded = settings.get("stream_policy", OWN_POLICY) in ("threaded", OWN_POLICY)
    return threaded and kind is not FailureKind.HAZARD
