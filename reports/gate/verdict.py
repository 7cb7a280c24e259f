"""A decision as JSON, in the form that `verdict.schema.json` describes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from harness.record import Json, Outcome
from reports.fates import Replayed
from reports.gate.decision import Check, Decision, in_words
from reports.ledger import KnownFinding, Standing

SCHEMA_FILE = Path(__file__).with_name("verdict.schema.json")
VERSION = 1


def verdict_json(decision: Decision) -> Json:
    """Plain data for a program."""
    run = decision.run
    counts = Counter(str(pair.outcome) for pair in run.pairs)
    return {
        "version": VERSION,
        "run_id": run.manifest.run_id,
        "profile": run.manifest.profile,
        "seed": run.manifest.seed,
        "rules": decision.rules.source,
        "date": decision.today.isoformat(),
        "passed": not decision.failed,
        "exit_code": decision.exit_code,
        "summary": in_words(decision),
        "counts": {str(outcome): counts[str(outcome)] for outcome in Outcome},
        "checks": [_check(check) for check in decision.checks],
        "findings": [_standing(standing) for standing in decision.standings],
        "unmatched": [_entry(entry) for entry in decision.unmatched],
        "known": [_replayed(r) for r in decision.replayed],
    }


def _check(check: Check) -> Json:
    return {
        "rule": check.rule,
        "passed": check.passed,
        "wanted": check.wanted,
        "found": check.found,
        "remedy": "" if check.passed else check.remedy,
    }


def _standing(standing: Standing) -> Json:
    finding = standing.finding
    return {
        "id": finding.finding_id,
        "signature": finding.signature,
        "title": finding.title,
        "checkpoint": finding.checkpoint,
        "state": str(standing.state),
        "reproduce": finding.reproduce,
        "known": None if standing.entry is None else _entry(standing.entry),
    }


def _replayed(replayed: Replayed) -> Json:
    return {
        "name": replayed.name,
        "title": replayed.title,
        "checkpoint": replayed.checkpoint,
        "source": "run" if replayed.source is None else str(replayed.source),
        "state": str(replayed.fate),
        "note": replayed.note,
        "reproduce": replayed.reproduce,
        "entry": None if replayed.entry is None else _entry(replayed.entry),
    }


def _entry(entry: KnownFinding) -> Json:
    return {
        "name": entry.name,
        "owner": entry.owner,
        "link": entry.link,
        "expires": entry.expires.isoformat(),
        "reason": entry.reason,
    }
