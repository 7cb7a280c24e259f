"""What two runs ran on, and with: only where they differ."""

from __future__ import annotations

from dataclasses import dataclass

from reports.load import Run
from reports.view.text import flat, plain, shortened

MAX_VALUE_CHARACTERS = 300
COMMIT = ("run", "commit")
TOLD = {"plants"}
"""Settings that are facts of the run already, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that differs; empty where a run does not have it."""

    kind: str
    """`run`, `environment`, `settings` or `checkpoint`."""
    name: str
    before: str
    now: str


def differences(before: Run, now: Run) -> tuple[Difference, ...]:
    """Everything recorded at the start that is not the same, except when it was."""
    old, new = _facts(before), _facts(now)
    return tuple(
        Difference(
            kind=key[0],
            name=key[1],
            before=shortened(old.get(key, ""), MAX_VALUE_CHARACTERS),
            now=shortened(new.get(key, ""), MAX_VALUE_CHARACTERS),
        )
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    )


def _facts(run: Run) -> dict[tuple[str, str], str]:
    manifest = run.manifest
    facts = {
        ("run", "profile"): manifest.profile,
        ("run", "seed"): str(manifest.seed),
        ("run", "planted faults"): ", ".join(manifest.plants) or "none",
        COMMIT: manifest.commit or "none",
        ("run", "switches"): ", ".join(a.name for a in manifest.axes),
    }
    facts |= {("environment", k): v for k, v in flat(manifest.environment)}
    facts |= {("settings", k): plain(v) for k, v in flat(manifest.settings) if k not in TOLD}
    facts |= {("checkpoint", c.name): f"{c.dtype}, {c.digest}" for c in manifest.checkpoints}
    return facts
