"""The kill matrix as data: what became of every fault, every control and the clean engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.campaign.rivalry import Rivalry

CLEAN = "clean engine"
CHECKS = ("oracle", "exact", "reordered", "kernel", "happens-before", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What became of one fault, of a control, or of the clean engine."""

    name: str
    checkpoint: str
    killed: bool
    """Whether a comparison FAILed: a crash alone is no kill."""
    cases: int
    """Ordinary cases up to and including the first that killed it; all of them if none did."""
    seconds: float
    by: dict[str, int] = field(default_factory=dict)
    """Check -> comparisons it failed, over the cases that were run."""
    pairs: int = 0
    dtype: str = "float32"
    compared: int = 0
    """Comparisons that other projects' rules were asked about: where nothing is wrong, all whose
    outputs were compared; with a fault, those of which it changed exactly one side."""
    called: dict[str, int] = field(default_factory=dict)
    """Rule -> how many of them it calls different; this judge's own is among the rules."""

    @property
    def alarms(self) -> int:
        """Failed comparisons; false ones where nothing is wrong."""
        return sum(n for check, n in self.by.items() if check != "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class KillMatrix:
    """What a command of kills came to."""

    kills: tuple[Kill, ...]
    controls: tuple[Kill, ...]
    clean: tuple[Kill, ...]
    """One for each checkpoint and dtype."""

    @classmethod
    def of(
        cls, results: Sequence[Kill], *, chosen: Sequence[str], controls: Sequence[str]
    ) -> KillMatrix:
        """Results in any order; `chosen` faults and `controls` by name, in the order to tell."""

        def named(names: Sequence[str]) -> tuple[Kill, ...]:
            mine = [kill for kill in results if kill.name in names]
            return tuple(sorted(mine, key=lambda kill: names.index(kill.name)))

        return cls(kills=named(chosen), controls=named(controls), clean=named([CLEAN]))

    @property
    def false_alarms(self) -> int:
        """Failed comparisons of the clean engine and of the controls."""
        return sum(kill.alarms for kill in (*self.clean, *self.controls))

    def rivalry(self) -> tuple[Rivalry, ...]:
        """What other projects' rules would have said, by dtype."""
        from harness.campaign.rivalry import Rivalry  # noqa: PLC0415 - loads the judge

        found: dict[str, Rivalry] = {}
        for kill in (*self.clean, *self.controls, *self.kills):
            tally = found.setdefault(kill.dtype, Rivalry(dtype=kill.dtype))
            tally.add(kill.compared, kill.called, faults=(kill.name,) if kill in self.kills else ())
        return tuple(found[dtype] for dtype in sorted(found))

    @property
    def unjudged(self) -> tuple[Kill, ...]:
        """Controls that show nothing: some comparison ended in an error, or none was made."""
        return tuple(kill for kill in self.controls if kill.by.get("error") or not kill.pairs)

    @property
    def passes(self) -> bool:
        everything_killed = all(kill.killed for kill in self.kills)
        return everything_killed and not self.false_alarms and not self.unjudged

    def to_json(self) -> dict[str, Any]:
        """For programs and for the report of the run that it is put beside."""
        return {
            "faults": [{"name": k.name, "killed": k.killed, **_counted(k)} for k in self.kills],
            "controls": [
                {"name": k.name, "flagged": bool(k.alarms), "pairs": k.pairs, **_counted(k)}
                for k in self.controls
            ],
            "false_alarms": self.false_alarms,
            "rules": [
                {
                    "dtype": found.dtype,
                    "rule": name,
                    "false_alarms": tally.false_alarms,
                    "of": found.legitimate,
                    "killed": len(tally.faults),
                    "of_faults": len(found.faults),
                }
                for found in self.rivalry()
                for name, tally in found.rules.items()
            ],
        }


def _counted(kill: Kill) -> dict[str, Any]:
    return {"by": kill.by, "cases": kill.cases, "seconds": kill.seconds}
