"""The kill matrix as data: what became of every fault, every control and the clean engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.campaign.rivalry import Rivalry

CLEAN = "clean engine"
CHECKS = ("oracle", "exact", "reordered", "kernel", "relation", "happens-before", "error")


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
    lost: str = ""
    """Why there is no result: its worker died, or raised this."""

    @property
    def alarms(self) -> int:
        """Failed comparisons; false ones where nothing is wrong."""
        return sum(n for check, n in self.by.items() if check != "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """A fault that, by its record, does no more in a dtype than rounding does: nothing to find."""

    kill: Kill
    reason: str

    @property
    def refuted(self) -> bool:
        """Whether a check saw it, so that its record is wrong; or it was not run at all."""
        return bool(self.kill.by or self.kill.lost or not self.kill.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class KillMatrix:
    """What a command of kills came to."""

    kills: tuple[Kill, ...]
    controls: tuple[Kill, ...]
    clean: tuple[Kill, ...]
    """One for each checkpoint and dtype."""
    equivalents: tuple[Equivalent, ...] = ()
    """Planted as the others are, and counted apart."""

    @classmethod
    def of(
        cls,
        results: Sequence[Kill],
        *,
        chosen: Sequence[str],
        controls: Sequence[str],
        reasons: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ) -> KillMatrix:
        """Results in any order; `chosen` faults and `controls` by name, in the order to tell.

        `reasons`: fault and dtype -> why it changes nothing there, by its record.
        """

        def named(names: Sequence[str]) -> tuple[Kill, ...]:
            mine = [kill for kill in results if kill.name in names]
            return tuple(sorted(mine, key=lambda kill: (kill.dtype, names.index(kill.name))))

        planted = named(chosen)
        return cls(
            kills=tuple(k for k in planted if (k.name, k.dtype) not in reasons),
            controls=named(controls),
            clean=named([CLEAN]),
            equivalents=tuple(
                Equivalent(kill=k, reason=reasons[k.name, k.dtype])
                for k in planted
                if (k.name, k.dtype) in reasons
            ),
        )

    @property
    def false_alarms(self) -> int:
        """Failed comparisons of the clean engine and of the controls."""
        return sum(kill.alarms for kill in (*self.clean, *self.controls))

    def rivalry(self) -> tuple[Rivalry, ...]:
        """What other projects' rules would have said, by dtype."""
        from harness.campaign.rivalry import Rivalry  # noqa: PLC0415 - loads the judge

        found: dict[str, Rivalry] = {}
        right = (*self.clean, *self.controls)
        for kill in (*right, *self.kills):
            tally = found.setdefault(kill.dtype, Rivalry(dtype=kill.dtype))
            tally.add(kill.compared, kill.called, faults=() if kill in right else (kill.name,))
        return tuple(found[dtype] for dtype in sorted(found))

    @property
    def unjudged(self) -> tuple[Kill, ...]:
        """Of controls and the clean engine, what shows nothing: an error, or no comparison."""
        right = (*self.controls, *self.clean)
        return tuple(kill for kill in right if kill.by.get("error") or not kill.pairs)

    @property
    def refuted(self) -> tuple[Equivalent, ...]:
        """Faults said to do nothing there that did."""
        return tuple(e for e in self.equivalents if e.refuted)

    @property
    def passes(self) -> bool:
        everything_killed = all(kill.killed for kill in self.kills)
        wrong = self.false_alarms or self.unjudged or self.refuted
        return everything_killed and not wrong

    def to_json(self) -> dict[str, Any]:
        """For programs and for the report of the run that it is put beside."""
        return {
            "faults": [{"name": k.name, "killed": k.killed, **_counted(k)} for k in self.kills],
            "equivalents": [
                {"name": e.kill.name, "refuted": e.refuted, "reason": e.reason, **_counted(e.kill)}
                for e in self.equivalents
            ],
            "controls": [
                {"name": k.name, "flagged": bool(k.alarms), "pairs": k.pairs, **_counted(k)}
                for k in self.controls
            ],
            "clean": [
                {"checkpoint": k.checkpoint, "pairs": k.pairs, **_counted(k)} for k in self.clean
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
    return {
        "dtype": kill.dtype,
        "by": kill.by,
        "cases": kill.cases,
        "seconds": kill.seconds,
        "compared": kill.compared,
        "rules": kill.called,
        **({"lost": kill.lost} if kill.lost else {}),
    }
