"""Breaks of `suites/unit/kv`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="ledger-never-complains",
        suite="suites/unit/kv/test_blocks.py",
        red="test_the_ledger_notices",
        at="engine.kv.blocks:BlockPool.check_integrity",
        instead=instead.returns(None),
    ),
    Break(
        name="freed-blocks-are-lost",
        suite="suites/unit/kv/test_blocks.py",
        red="test_no_sequence_of_calls_unbalances_the_ledger",
        at="engine.kv.blocks:BlockPool.release",
        instead=instead.returns(None),
    ),
)
