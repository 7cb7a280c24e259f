"""What a run proposes for the calibration: the same measurements, from its records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from harness.axes import baseline
from harness.campaign.calibrate import entry_of
from harness.campaign.judging import CaseView, executed
from harness.campaign.outputs import OutputStore
from harness.judge.calibration import CHUNKED, FLOAT64, Entry
from harness.judge.metrics import error
from harness.judge.tolerance import MIN_COUNT, BucketKey, ToleranceError
from harness.record import EndRecord, Outcome, PairRecord, read_manifest, read_records

Sample = tuple[BucketKey, str, float]


def proposal_of(folder: Path) -> tuple[Entry, ...]:
    """Entries of every bucket that the run has samples enough of.

    Raises ToleranceError for a run whose answers are not known to be good, and for one too small.
    """
    manifest, records = read_manifest(folder), list(read_records(folder))
    bad = [r for r in records if isinstance(r, PairRecord) and r.outcome in _NOT_GOOD]
    if manifest.plants or bad or not any(isinstance(r, EndRecord) for r in records):
        why = (
            f"it ran with the plants {', '.join(manifest.plants)}"
            if manifest.plants
            else f"{len(bad)} of its pairs are FAIL or ERROR"
            if bad
            else "it did not end"
        )
        raise ToleranceError(f"run {manifest.run_id} is not known to be good: {why}")
    dtypes = {c.name: c.dtype for c in manifest.checkpoints}
    samples: dict[tuple[BucketKey, str], list[float]] = defaultdict(list)
    for name, cases in executed(records).items():
        for case in cases:
            view = CaseView(case, dtypes[name], OutputStore(folder))
            for key, pairs, value in _samples(view):
                samples[key, pairs].append(value)
    found = [
        entry_of(key, pairs, errors, seed=manifest.seed, command=" ".join(manifest.command))
        for (key, pairs), errors in samples.items()
        if len(errors) >= MIN_COUNT
    ]
    if not found:
        most = max((len(errors) for errors in samples.values()), default=0)
        raise ToleranceError(
            f"run {manifest.run_id} has at most {most} samples of a bucket; expected {MIN_COUNT}. "
            "Measure with `parity calibrate`, or run a larger profile"
        )
    return tuple(sorted(found, key=lambda entry: entry.place))


_NOT_GOOD = (Outcome.FAIL, Outcome.ERROR)


def _samples(view: CaseView) -> Iterator[Sample]:
    reference, truth = view.reference, view.oracle
    if reference is None or reference.error or truth is None:
        return
    chunked = view.inline.get(baseline().with_value("chunk", "chunked"))
    for index, (mine, exact) in enumerate(zip(reference.outputs, truth, strict=True)):
        for kind in view.subject.kinds:
            key = view.subject.key(index, kind)
            yield key, FLOAT64, error(kind, mine, exact)
            if chunked is None or chunked.error:
                continue
            if chunked.witness.get("chunks", {}).get(str(index), 1) > 1:
                yield key, CHUNKED, error(kind, chunked.outputs[index], mine, scale=exact)
