"""How exactly attribution and localisation explain perturbations that they know nothing of."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.attribution.shrink import SHRINKING
from harness.campaign.profile import FENCED_COPY_LAGS
from harness.case import case_from_json
from harness.faults.perturbation import Perturbation
from harness.record import FindingRecord
from harness.search import Budget
from harness.trials.bench import TrialBench, fails
from harness.trials.ledger import Ledger

AXES = ("async", "chunk", "compile", "pp")
MILLI = (30, 100, 300, 1000)
"""Thousandths of a row's norm that it is moved by."""
MAX_CASES = 12
"""Ordinary cases tried before a perturbation counts as not exposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One perturbation, and what was said of it."""

    seed: int
    plugin: str
    order: int
    exposed: bool
    """Whether any of MAX_CASES ordinary cases failed."""
    cases: int
    findings: int = 0
    axes_exact: bool = False
    """The finding with most pairs names the planted switches and nothing else."""
    minimal: bool = False
    """Every set it names is minimal in its own truth table."""
    localised: bool = False
    """The exact layer, token and chunk."""
    layer_off: int | None = None
    """Layers between the planted and the reported one; None: not localised at all."""
    tokens_over: int | None = None
    """Tokens of the shrunk case beyond the least that can hold the perturbed one."""
    calls: int = 0
    """Engine calls for shrinking, the truth table and watching together."""
    shrinks: tuple[int, ...] = ()
    """Engine calls of each shrink alone, from its first run to its last; older results lack it."""
    seconds: float = 0.0
    said: str = ""


def explain(
    bench: TrialBench, ledger: Ledger, seeds: Sequence[int], *, num_layers: int
) -> Iterator[Mapping[str, Any]]:
    """One perturbation a seed. Yields each result as it is known, stored ones first."""
    yield from ledger.rows
    for seed in seeds:
        if ledger.holds(seed=seed):
            continue
        planted = drawn(seed, num_layers=num_layers, chunk=bench.chunk)
        with bench.planted(planted.plugin):
            row = asdict(_explained(bench, seed, planted))
        ledger.append(row)
        yield row


def drawn(seed: int, *, num_layers: int, chunk: int) -> Perturbation:
    """Orders 1, 2 and 3 in turn; layer, token and size by seed.

    The last layer's rows reach a pooled output only where they are pooled themselves, so that layer
    is drawn as any other and may go unexposed.
    """
    draw = random.Random(f"perturbation {seed}")
    axes = tuple(sorted(draw.sample(AXES, 1 + seed % 3)))
    return Perturbation(
        layer=draw.randrange(num_layers),
        token=draw.randrange(3 * chunk),
        milli=draw.choice(MILLI),
        axes=axes,
    )


def _explained(bench: TrialBench, seed: int, planted: Perturbation) -> Explanation:
    order, number = len(planted.axes), 0
    began = time.perf_counter()
    for number, case in enumerate(bench.cases(seed)[:MAX_CASES], start=1):
        cases, pairs = bench.judged(case, FENCED_COPY_LAGS)
        if not fails(pairs):
            continue
        budget = Budget(calls=2000, seconds=60.0)
        findings = bench.findings(cases, pairs, budget)
        main = max(findings, key=lambda finding: len(finding.pairs))
        return Explanation(
            seed=seed,
            plugin=planted.plugin,
            order=order,
            exposed=True,
            cases=number,
            findings=len(findings),
            axes_exact=len(findings) == 1 and named_axes(main) == (frozenset(planted.axes),),
            minimal=is_minimal(main),
            localised=_found(main, planted),
            layer_off=_layer_off(main, planted),
            tokens_over=_tokens_over(main, planted, bench.chunk),
            calls=budget.spent_calls,
            shrinks=tuple(budget.counts.get(SHRINKING, ())),
            seconds=round(time.perf_counter() - began, 3),
            said=main.signature,
        )
    return Explanation(seed=seed, plugin=planted.plugin, order=order, exposed=False, cases=number)


def named_axes(finding: FindingRecord) -> tuple[frozenset[str], ...]:
    """The axes of each minimal set, without their values."""
    return tuple(
        frozenset(switch.split("=")[0] for switch in values) for values in finding.minimal_sets
    )


def is_minimal(finding: FindingRecord) -> bool:
    """No named set holds another."""
    sets = [frozenset(values) for values in finding.minimal_sets]
    return bool(sets) and not any(a < b for a in sets for b in sets)


def _found(finding: FindingRecord, planted: Perturbation) -> bool:
    first = finding.first_divergence
    if first is None or (first.layer, first.token) != (planted.layer + 1, planted.token):
        return False
    edges = finding.chunk_edges[first.prompt] if finding.chunk_edges else ()
    return first.chunk == sum(edge <= planted.token for edge in edges)


def _layer_off(finding: FindingRecord, planted: Perturbation) -> int | None:
    first = finding.first_divergence
    return None if first is None else first.layer - (planted.layer + 1)


def _tokens_over(finding: FindingRecord, planted: Perturbation, chunk: int) -> int:
    """The least prompt that holds the token, and is split where the perturbation asks for it."""
    least = planted.token + 1
    if "chunk" in planted.axes:
        least = max(least, chunk + 1)
    case = case_from_json(finding.case)
    return sum(len(prompt.tokens or ()) for prompt in case.prompts) - least
