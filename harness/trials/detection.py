"""How many ordinary cases, and how much time, until a planted fault is first seen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.trials.bench import TrialBench, fails
from harness.trials.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """One fault under one seed."""

    fault: str
    seed: int
    cases: int
    """Cases run up to and including the first that fails, or all of them."""
    seconds: float
    """From the first case on warm engines; generation and judging included."""
    found: bool
    setting: str
    """Stream policy and inputs of the case that failed; empty when none did."""


def detect(
    bench: TrialBench, ledger: Ledger, faults: Mapping[str, str], seeds: Sequence[int]
) -> Iterator[Mapping[str, Any]]:
    """Fault name -> plug-in. Yields each result as it is known, stored ones first."""
    yield from ledger.rows
    for name, plugin in faults.items():
        for seed in seeds:
            if ledger.holds(fault=name, seed=seed):
                continue
            with bench.planted(plugin):
                row = asdict(_first(bench, name, seed))
            ledger.append(row)
            yield row


def _first(bench: TrialBench, name: str, seed: int) -> Detection:
    began = time.perf_counter()
    number, setting = 0, ""
    for number, case in enumerate(bench.cases(seed), start=1):
        chosen = bench.settings[(number - 1) % len(bench.settings)]
        if fails(bench.judged(case, chosen)[1]):
            setting = f"{chosen['stream_policy']}, {chosen['inputs']}"
            break
    return Detection(
        fault=name,
        seed=seed,
        cases=number,
        seconds=round(time.perf_counter() - began, 3),
        found=bool(setting),
        setting=setting,
    )
