"""Checks of outputs that other distributions add; each side of every pair must pass them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.judge.output import Outputs
from harness.judge.subject import Subject
from harness.registry import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One more claim about the outputs of a case.

    `wrong(subject, outputs, oracle)` returns what is wrong with one side's outputs, or None. The
    outputs are finite and of the right number and shape; `oracle` is None where float64 has no say.
    """

    name: str
    meaning: str
    wrong: Callable[[Subject, Outputs, Outputs | None], str | None]


CHECKS = Table("checks", Check, {})


def own(
    subject: Subject,
    side: str,
    outputs: Outputs,
    oracle: Outputs | None,
    checks: Mapping[str, Check] = CHECKS,
) -> str:
    """What the added checks have against one side; empty when nothing."""
    found = ((check.name, check.wrong(subject, outputs, oracle)) for check in checks.values())
    return "; ".join(f"{name}, side {side}: {reason}" for name, reason in found if reason)
