"""Findings that look like one cause: the same switches, parting at the same place.

The search keeps failures apart by task and stream policy, because each is replayed on its own. A
reader first wants to know how many things are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.view.findings import CauseKey, FindingView


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """`lead` is the one that fails under any stream policy, where there is one; else the worst."""

    lead: FindingView
    variants: tuple[FindingView, ...]

    @property
    def names(self) -> str:
        """`F-12ab (embed, paced(1)); F-34cd (token_embed, any)`"""
        return "; ".join(
            f"{v.finding_id} ({', '.join(filter(None, (v.task, v.policy)))})" for v in self.variants
        )


def grouped(found: Sequence[FindingView]) -> tuple[FindingGroup, ...]:
    """In the order of each group's worst; `found` is worst first."""
    groups: dict[CauseKey, list[FindingView]] = {}
    for view in found:
        groups.setdefault(view.cause, []).append(view)
    made = []
    for own in groups.values():
        lead = next((v for v in own if v.policy == "any"), own[0])
        made.append(FindingGroup(lead=lead, variants=tuple(v for v in own if v is not lead)))
    return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Findings that fail under the same switches, on whatever checkpoint; the lead of the first."""

    fails_when: str
    anchor: str
    divergence: str
    reproduce: str
    findings: int
    checkpoints: tuple[str, ...]
    worst: str
    share: str


def causes(groups: Sequence[FindingGroup], found: Sequence[FindingView]) -> tuple[Cause, ...]:
    """In the order of the groups, the worst first; `found` is worst first, and of these groups."""
    made = []
    for when in dict.fromkeys(group.lead.fails_when for group in groups):
        lead = next(group.lead for group in groups if group.lead.fails_when == when)
        own = [view for view in found if view.fails_when == when]
        made.append(
            Cause(
                fails_when=when,
                anchor=lead.anchor,
                divergence=lead.divergence,
                reproduce=lead.reproduce,
                findings=len(own),
                checkpoints=tuple(dict.fromkeys(view.checkpoint for view in own)),
                worst=own[0].worst,
                share=own[0].share,
            )
        )
    return tuple(made)
