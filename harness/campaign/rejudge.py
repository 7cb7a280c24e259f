"""Judging a recorded run again under other tolerances: nothing is run, nothing is written over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.campaign.judging import (
    CaseView,
    CheckpointJudge,
    Executed,
    Verdicts,
    executed,
)
from harness.campaign.outputs import OutputStore
from harness.campaign.spec import RunSpec
from harness.judge.against_oracle import ORACLE, least_cap
from harness.judge.bounds import Bounds
from harness.judge.distances import distances
from harness.judge.output import OutputKind
from harness.judge.rules import Rules
from harness.judge.tolerance import BucketKey
from harness.judge.verdict import pair_id
from harness.record import (
    Comparison,
    DriftRecord,
    Outcome,
    PairRecord,
    Record,
    RunManifest,
    Tier,
    exit_code,
    read_manifest,
    read_records,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The least bound under which every pair of a bucket passes, beside the one in force."""

    checkpoint: str
    rule: str
    """`reordered`, `kernel`, or `cap`: the baseline against float64."""
    dtype: str
    kind: OutputKind
    bucket: str
    """Empty for a cap, which holds for every length."""
    pairs: int
    needed: float
    in_force: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged:
    """A run's verdicts as they were and as they are under other rules."""

    manifest: RunManifest
    records: tuple[Record, ...]
    """Everything that the run had recorded."""
    judged: tuple[Verdicts, ...]
    needs: tuple[Need, ...]
    beyond: tuple[PairRecord, ...]
    """Failures that no tolerance excuses: bits of the exact tier, norms, order, races."""

    @property
    def pairs(self) -> tuple[PairRecord, ...]:
        return tuple(r for r in self.judged if isinstance(r, PairRecord))

    @property
    def counts(self) -> Counter[str]:
        return Counter(str(pair.outcome) for pair in self.pairs)

    @property
    def exit_code(self) -> int:
        drifted = any(isinstance(r, DriftRecord) and r.outcome is Outcome.FAIL for r in self.judged)
        return 1 if drifted else exit_code(self.counts)

    @property
    def before(self) -> Mapping[str, PairRecord]:
        return {r.pair_id: r for r in self.records if isinstance(r, PairRecord)}

    @property
    def changed(self) -> tuple[tuple[PairRecord, PairRecord], ...]:
        """(as it was, as it is) of every pair whose outcome is another now."""
        before = {_sides(r): r for r in self.records if isinstance(r, PairRecord)}
        both = ((before.get(_sides(pair)), pair) for pair in self.pairs)
        return tuple((old, new) for old, new in both if old and old.outcome is not new.outcome)


def _sides(pair: PairRecord) -> tuple[str, Comparison, str, str]:
    """What was compared with what, also in runs whose ids of pairs did not name the checkpoint."""
    return pair.checkpoint, pair.comparison, pair.a, pair.b


def rejudge(folder: Path, rules: Rules) -> Rejudged:
    """Judge every pair of a run again from its records and outputs. Raises RecordError."""
    manifest, records = read_manifest(folder), list(read_records(folder))
    benches = _Benches(manifest, folder)
    judged: list[Verdicts] = []
    needs: list[Need] = []
    beyond: list[PairRecord] = []
    for name, cases in executed(records).items():
        bounds = Bounds(rules=rules)
        found = list(benches.judge(name, bounds).judge(cases))
        least = _Needs(bounds, {r.pair_id: r for r in found if isinstance(r, PairRecord)})
        for case in cases:
            least.observe(benches.view(name, case))
        judged += found
        needs += least.found(name)
        if _failures(found):
            lenient = Bounds(rules=least.raised(rules))
            beyond += _failures(benches.judge(name, lenient).judge(cases))
    return Rejudged(
        manifest=manifest,
        records=tuple(records),
        judged=tuple(judged),
        needs=tuple(needs),
        beyond=tuple(beyond),
    )


def _failures(records: Sequence[Record] | Iterator[Verdicts]) -> list[PairRecord]:
    return [r for r in records if isinstance(r, PairRecord) and r.outcome is Outcome.FAIL]


class _Benches:
    """Owns nothing; what a manifest says of each checkpoint, as the judge takes it."""

    def __init__(self, manifest: RunManifest, folder: Path) -> None:
        self._spec = RunSpec.from_json(manifest.settings)
        self._checkpoints = {c.name: c for c in manifest.checkpoints}
        self._store = OutputStore(folder)

    def judge(self, name: str, bounds: Bounds) -> CheckpointJudge:
        return CheckpointJudge(
            dtype=self._checkpoints[name].dtype,
            causal=self._checkpoints[name].kind == "decoder",
            store=self._store,
            chunk=self._spec.plan(name).chunk,
            bounds=bounds,
        )

    def view(self, name: str, case: Executed) -> CaseView:
        return CaseView(case, self._checkpoints[name].dtype, self._store)


@dataclass(slots=True)
class _Needs:
    """Owns: the least bounds of one checkpoint, as its cases are seen."""

    bounds: Bounds
    pairs: Mapping[str, PairRecord]
    _bounds: dict[tuple[Tier, BucketKey], list[float]] = field(default_factory=dict)
    _caps: dict[tuple[str, OutputKind], list[float]] = field(default_factory=dict)

    def observe(self, view: CaseView) -> None:
        reference, oracle, subject = view.reference, view.oracle, view.subject
        if reference is None or oracle is None:
            return
        checkpoint = subject.checkpoint
        if self._compared(checkpoint, Comparison.ORACLE, ORACLE, reference.execution_id):
            least = least_cap(subject, reference.outputs, oracle, view.twin, self.bounds)
            self._caps.setdefault((subject.dtype, subject.kind), []).append(least)
        for comparison, a, b, _ in view.pairs():
            pair = self._compared(checkpoint, comparison, a.execution_id, b.execution_id)
            if pair is None or pair.tier is Tier.EXACT:
                continue
            held = distances(subject, pair.tier, a.outputs, b.outputs, oracle, self.bounds)
            for prompt in (p for prompts in held.values() for p in prompts):
                self._bounds.setdefault((pair.tier, prompt.key), []).append(prompt.needed)

    def _compared(
        self, checkpoint: str, comparison: Comparison, a: str, b: str
    ) -> PairRecord | None:
        """The pair's record, where two structurally equal sets of outputs were compared."""
        pair = self.pairs.get(pair_id(checkpoint, comparison, a, b))
        return pair if pair is not None and pair.num_compared else None

    def found(self, checkpoint: str) -> Iterator[Need]:
        for (dtype, kind), values in sorted(self._caps.items()):
            yield Need(
                checkpoint=checkpoint,
                rule="cap",
                dtype=dtype,
                kind=kind,
                bucket="",
                pairs=len(values),
                needed=max(values),
                in_force=self.bounds.rules.cap(dtype, kind).floor,
            )
        for (tier, key), values in sorted(self._bounds.items()):
            yield Need(
                checkpoint=checkpoint,
                rule=str(tier),
                dtype=key.dtype,
                kind=key.kind,
                bucket=key.bucket,
                pairs=len(values),
                needed=max(values),
                in_force=self.bounds.bound(tier, key).oracle,
            )

    def raised(self, rules: Rules) -> Rules:
        """The rules with every bound at what is needed."""
        for (tier, key), values in self._bounds.items():
            rules = rules.with_bound(tier, key, max(values))
        for (dtype, kind), values in self._caps.items():
            rules = rules.with_cap(dtype, kind, max(values))
        return rules
