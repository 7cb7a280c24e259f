"""Our verdicts and the rivals' on the same recorded outputs: false alarms, and defects missed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.campaign.judging import CaseView, Executed, executed
from harness.campaign.outputs import OutputStore
from harness.judge.rivals import RIVALS, accepts
from harness.judge.verdict import pair_id
from harness.record import (
    ExecutionRecord,
    Outcome,
    PairRecord,
    Record,
    RecordError,
    RunManifest,
    read_manifest,
    read_records,
)

OURS = "this judge"


@dataclass(slots=True)
class Tally:
    """Owns: one rule's counts for one dtype."""

    false_alarms: int = 0
    kills: int = 0
    faults: set[str] = field(default_factory=set)
    """Names of the faults of which at least one pair was called different."""


@dataclass(slots=True)
class Rivalry:
    """Owns: the counts of every rule for one dtype."""

    dtype: str
    legitimate: int = 0
    """Pairs of runs of the engine as it is."""
    changed: int = 0
    """Pairs of which a planted fault changed exactly one side."""
    faults: set[str] = field(default_factory=set)
    """Faults that changed anything."""
    rules: dict[str, Tally] = field(
        default_factory=lambda: {name: Tally() for name in (OURS, *(r.name for r in RIVALS))}
    )

    def add(self, compared: int, called: Mapping[str, int], *, faults: Collection[str]) -> None:
        """Count pairs that each rule called different: kills of `faults`, or without any, false
        alarms."""
        if not faults:
            self.legitimate += compared
        elif compared:
            self.changed += compared
            self.faults.update(faults)
        for name, number in called.items():
            tally = self.rules[name]
            if not faults:
                tally.false_alarms += number
            else:
                tally.kills += number
                tally.faults.update(faults if number else ())

    @property
    def measured(self) -> bool:
        """Whether both respects were: without a changed pair, or a right one, nothing is shown."""
        return bool(self.changed and self.legitimate)

    @property
    def dominating(self) -> tuple[str, ...]:
        """Rivals at least as good as ours in both respects, and better in one."""
        ours = self.rules[OURS]
        return tuple(
            name
            for name, tally in self.rules.items()
            if tally.false_alarms <= ours.false_alarms
            and tally.kills >= ours.kills
            and (tally.false_alarms, tally.kills) != (ours.false_alarms, ours.kills)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One pair of runs of which outputs were compared, and what each rule says of it."""

    dtype: str
    pair: PairRecord
    digests: tuple[str, str]
    verdicts: dict[str, bool]
    """Rule -> whether it accepts the pair."""

    def one_side_changed(self, right: Mapping[str, str]) -> bool:
        """Whether exactly one side is not what the engine as it is answers: execution -> digest."""
        expected = (right.get(self.pair.a), right.get(self.pair.b))
        changed = [x != y for x, y in zip(expected, self.digests, strict=True)]
        return None not in expected and sum(changed) == 1


def rivalry(folders: Sequence[Path]) -> tuple[Rivalry, ...]:
    """Counts by dtype over clean runs and planted runs of the same request.

    What a fault changed is read from the digests of a clean run with the same seed and profile, not
    from any verdict. RecordError where a planted run has no clean one beside it.
    """
    runs = [(read_manifest(f), list(read_records(f)), OutputStore(f)) for f in folders]
    clean = {_request(m): _digests(records) for m, records, _ in runs if not m.plants}
    found: dict[str, Rivalry] = {}
    for manifest, records, store in runs:
        right = clean.get(_request(manifest))
        if right is None:
            raise RecordError(
                f"run {manifest.run_id} has plants ({', '.join(manifest.plants)}) and no clean run "
                f"of profile {manifest.profile}, seed {manifest.seed} beside it; name one as well"
            )
        dtypes = {c.name: c.dtype for c in manifest.checkpoints}
        pairs = [r for r in records if isinstance(r, PairRecord)]
        for compared in (
            seen
            for name, cases in executed(records).items()
            for seen in compare(cases, pairs, dtypes[name], store)
        ):
            tally = found.setdefault(compared.dtype, Rivalry(dtype=compared.dtype))
            if manifest.plants and not compared.one_side_changed(right):
                continue
            called = {name: not accepted for name, accepted in compared.verdicts.items()}
            tally.add(1, called, faults=manifest.plants)
    return tuple(found[dtype] for dtype in sorted(found))


def _request(manifest: RunManifest) -> tuple[str, int, tuple[str, ...]]:
    return manifest.profile, manifest.seed, tuple(c.name for c in manifest.checkpoints)


def _digests(records: Iterable[Record]) -> dict[str, str]:
    return {r.execution_id: r.output_digest for r in records if isinstance(r, ExecutionRecord)}


def compare(
    cases: Sequence[Executed], judged: Sequence[PairRecord], dtype: str, store: OutputStore
) -> Iterator[Compared]:
    """Every pair of runs of which outputs were compared; a verdict on form alone counts too."""
    pairs = {pair.pair_id: pair for pair in judged}
    for case in cases:
        digests = _digests(case.executions)
        view = CaseView(case, dtype, store)
        if view.reference is None:
            continue
        for comparison, a, b, _ in view.pairs():
            checkpoint = view.subject.checkpoint
            pair = pairs.get(pair_id(checkpoint, comparison, a.execution_id, b.execution_id))
            if pair is None or pair.outcome not in (Outcome.PASS, Outcome.FAIL):
                continue
            verdicts = {OURS: pair.outcome is Outcome.PASS}
            for rival in RIVALS:
                verdicts[rival.name] = accepts(rival, view.subject.kind, a.outputs, b.outputs)
            yield Compared(
                dtype=dtype,
                pair=pair,
                digests=(digests[a.execution_id], digests[b.execution_id]),
                verdicts=verdicts,
            )


def table(found: Sequence[Rivalry]) -> str:
    """The counts as a Markdown table."""
    sources = {OURS: "bounds by tier, from float64 and measured nulls"}
    sources |= {rival.name: rival.source for rival in RIVALS}
    lines = [
        "| dtype | rule | from | false alarms | of pairs | called different | of changed pairs "
        "| faults killed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for dtype in found:
        for name, tally in dtype.rules.items():
            lines.append(
                f"| {dtype.dtype} | {name} | {sources[name]} | {tally.false_alarms} "
                f"| {dtype.legitimate} | {tally.kills} | {dtype.changed} "
                f"| {len(tally.faults)} of {len(dtype.faults)} |"
            )
    return "\n".join(lines) + "\n"
