"""The gate: a recorded run against rules in one file. What CI trusts."""

from __future__ import annotations

from reports.gate.decision import Check, Decision, decide
from reports.gate.rules import Limits, Rules, RulesError
from reports.gate.rules_file import read_rules
from reports.gate.verdict import SCHEMA_FILE, verdict_json
from reports.ledger import KnownFinding, Standing, State

__all__ = [
    "SCHEMA_FILE",
    "Check",
    "Decision",
    "KnownFinding",
    "Limits",
    "Rules",
    "RulesError",
    "Standing",
    "State",
    "decide",
    "read_rules",
    "verdict_json",
]
