"""Metamorphic relations: what one configuration's answers say about its other answers."""

from __future__ import annotations

from harness.registry import Table
from harness.relations.alone import ALONE
from harness.relations.base import Asked, FollowUp, Relation
from harness.relations.company import COMPANY
from harness.relations.entry_point import ENTRY_POINT
from harness.relations.pair_swap import PAIR_SWAP
from harness.relations.permutation import PERMUTATION
from harness.relations.prefix import PREFIX
from harness.relations.repeat import REPEAT
from harness.relations.soak import SOAK
from harness.relations.split import SPLIT
from harness.relations.truncation import TRUNCATION

RELATIONS = Table(
    "relations",
    Relation,
    {
        relation.name: relation
        for relation in (
            ALONE,
            COMPANY,
            PERMUTATION,
            REPEAT,
            SPLIT,
            PREFIX,
            PAIR_SWAP,
            TRUNCATION,
            ENTRY_POINT,
            SOAK,
        )
    },
)
"""Every relation by name, those of other distributions behind ours."""

__all__ = ["RELATIONS", "Asked", "FollowUp", "Relation"]
