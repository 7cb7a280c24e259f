"""Relations of a case: which are asked in turn, their runs, and their verdicts from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.axes import Cell, Plan
from harness.case import Case
from harness.record import ExecutionRecord, Record, RelationRecord, Tier
from harness.relations import RELATIONS, Asked, FollowUp, Relation
from harness.systems.base import Encoded, Served, System


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPlan:
    """Which relations a profile asks of a checkpoint's cases."""

    names: tuple[str, ...]
    per_case: int = 1
    """Relations asked of each case, in turn of those that apply to it."""


class Runs(Protocol):
    """Who runs and records a follow-up: the campaign's executor."""

    def follow_up(
        self,
        asked: FollowUp,
        cell: Cell,
        settings: Mapping[str, str],
        plan: Plan | None,
        of: Case,
    ) -> ExecutionRecord: ...

    def follow_up_truth(
        self, asked: FollowUp, settings: Mapping[str, str], of: Case
    ) -> ExecutionRecord: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Relator:
    """Owns nothing; asks a case's relations."""

    plan: RelationPlan
    system: System
    causal: bool
    vocabulary: int
    max_model_len: int
    reserved: frozenset[int] = frozenset()

    def chosen(
        self, case: Case, prompts: Sequence[Encoded]
    ) -> Iterator[tuple[Relation, Sequence[FollowUp]]]:
        """The relations that are in turn for this case, with their follow-ups."""
        asked = Asked(
            case=case,
            prompts=tuple(prompts),
            causal=self.causal,
            vocabulary=self.vocabulary,
            max_model_len=self.max_model_len,
            encode=self.system.encode,
            reserved=self.reserved,
            **({"unserved": self.system.unserved} if isinstance(self.system, Served) else {}),
        )
        names, turn = self.plan.names, _turn(case)
        left = self.plan.per_case
        for index in range(len(names)):
            relation = RELATIONS[names[(turn + index) % len(names)]]
            follow_ups = relation.follow_ups(asked) if left else ""
            if not isinstance(follow_ups, str):
                left -= 1
                yield relation, follow_ups

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        ran: Mapping[Cell, ExecutionRecord],
        settings: Mapping[str, str],
        runs: Runs,
    ) -> Iterator[Record]:
        """Every follow-up in one of the cells that ran, which the case chooses."""
        # In a small pool prompts wait for each other, so nobody can promise them company.
        cells = tuple(cell for cell in ran if cell.get("kv_pool", "ample") == "ample")
        if not cells:
            return
        cell = cells[_turn(case) // 7 % len(cells)]
        own = ran[cell]
        for relation, follow_ups in self.chosen(case, prompts):
            for follow_up in follow_ups:
                marked = {**settings, "relation": f"{relation.name}, {follow_up.variant}"}
                plan = own.plan if follow_up.same_plan else None
                record = runs.follow_up(follow_up, cell, marked, plan, case)
                yield record
                truth = ""
                if follow_up.own_truth:
                    answer = runs.follow_up_truth(follow_up, marked, case)
                    truth = answer.execution_id
                    yield answer
                yield RelationRecord(
                    case_id=case.case_id,
                    checkpoint=own.checkpoint,
                    relation=relation.name,
                    variant=follow_up.variant,
                    tier=Tier.EXACT if _exact(relation, own, record) else relation.tier,
                    expects=relation.expects,
                    of=own.execution_id,
                    follow_up=record.execution_id,
                    truth=truth,
                    case=follow_up.case.to_json(),
                    matches=follow_up.matches,
                    same_plan=follow_up.same_plan,
                    asked_before=sum(len(its) for _, its in follow_up.before),
                )


def _exact(relation: Relation, own: ExecutionRecord, other: ExecutionRecord) -> bool:
    return not other.error and relation.exact_when(own.plan or (), other.plan or ())


def _turn(case: Case) -> int:
    """A number that follows from the case alone, so that shards and repeats agree."""
    return int(case.case_id, 16)
