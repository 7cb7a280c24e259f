"""Smallest cases of known findings, kept as one small JSON file each beside the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.campaign.redact import REDACTED
from harness.campaign.spec import RunSpec
from harness.record import (
    FindingRecord,
    KnownCase,
    RecordError,
    RunManifest,
    known_case_from_json,
    to_json,
)

SIZES = ("chunk", "max_num_seqs", "max_model_len", "block_size")
"""Of the checkpoint's plan: written out, so that a later profile does not change the case."""


def folder_of(rules: Path) -> Path:
    """`parity.known` beside `parity.toml`."""
    return rules.with_suffix(".known")


def path_of(rules: Path, finding_id: str) -> Path:
    """The file that holds a finding's smallest case, whether it is there or not."""
    return folder_of(rules) / f"{finding_id}.json"


def known_case(finding: FindingRecord, manifest: RunManifest) -> KnownCase:
    """What has to be kept of a finding of a run. RecordError where its prompts were taken out."""
    if REDACTED in json.dumps(finding.case):
        raise RecordError(
            f"the prompts of {finding.finding_id} were kept out of run {manifest.run_id} "
            "(--redact), so there is no case to keep; run it again without --redact"
        )
    try:
        spec = RunSpec.from_json(manifest.settings)
    except TypeError as error:
        raise RecordError(
            f"{manifest.run_id} is not a run of `parity run`: nothing says how its cases are run"
        ) from error
    plan = spec.plan(finding.checkpoint)
    asked = replace(
        spec,
        checkpoints=(finding.checkpoint,),
        plants=(),
        options={},
        cases_file=None,
        ledger=None,
        corpus=None,
        redact=False,
        sizes={**spec.sizes, **{name: getattr(plan, name) for name in SIZES}},
    )
    return KnownCase(
        finding=replace(
            finding,
            pairs=(),
            token_errors=(),
            token_cosines=(),
            layer_errors=(),
            token_texts=(),
            chunk_edges=(),
            reproduce="",
            script="",
        ),
        settings=asked.to_json(),
        run_id=manifest.run_id,
        created=manifest.created,
        commit=manifest.commit,
    )


def keep(case: KnownCase, rules: Path) -> Path:
    """Write the case beside the ledger; the file is there whole or not at all."""
    path = path_of(rules, case.finding.finding_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    text = json.dumps(to_json(case), indent=1, ensure_ascii=False, allow_nan=False)
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)
    return path


def kept(rules: Path) -> tuple[KnownCase, ...]:
    """Every case beside the ledger, by name. RecordError names a file that cannot be read."""
    return tuple(read(path) for path in sorted(folder_of(rules).glob("*.json")))


def read(path: Path) -> KnownCase:
    """One file. RecordError says what is wrong with it."""
    try:
        return known_case_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, OSError) as error:
        raise RecordError(f"{path}: {error}") from error


def request(case: KnownCase, now: RunSpec) -> RunSpec:
    """How the case is run again: as it was asked then, on what is judged now."""
    asked: Mapping[str, Any] = case.settings
    return replace(RunSpec.from_json(asked), plants=now.plants, options=now.options)


def cannot_replay(case: KnownCase, now: RunSpec) -> str:
    """Why a run says nothing about the case; empty where it can replay it."""
    then = RunSpec.from_json(case.settings)
    if case.finding.checkpoint not in now.checkpoints:
        return f"this run has no {case.finding.checkpoint}"
    for name in ("system", "dtype", "batch_invariant"):
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            return f"it was found with {name}={before}, and this run has {name}={after}"
    return ""
