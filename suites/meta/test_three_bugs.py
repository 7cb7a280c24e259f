"""The three bugs this project exists for: planted, found unaided, named, replayed, and gone again.

What is expected of each was measured in released engines and is written down in the faults' own
descriptions; nothing that searches or explains has read them.

Passes wrongly if there were findings without a bug, or any failing set of switches was called the
smallest. Ruled out by `test_clean_engine_has_no_finding` and suites/meta/test_suites_can_fail.py:
`supersets-are-minimal-too`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.attribution import FailureKind, Signature, find, replay
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import PROFILES, CheckpointPlan
from harness.campaign.reference import CaseReference
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.faults import FAULTS
from harness.judge.bounds import Bounds
from harness.oracle.cache import CachedOracle
from harness.record import FindingRecord, Outcome, PairRecord
from harness.search import Budget
from harness.systems.engine import EngineOptions, EngineSystem

NAME = "tiny-qwen3"
PLAN: CheckpointPlan = next(p for p in PROFILES["smoke"].checkpoints if p.name == NAME)
COPY_LAGS, PACED, COMPUTE_LAGS, IMMEDIATE = (
    {"stream_policy": policy, "inputs": "fenced"}
    for policy in ("lag(copy@last)", "paced(1)", "lag(compute@last)", "immediate")
)
POLICIES = (COPY_LAGS, PACED, COMPUTE_LAGS)
S1, S2, S3 = "stale-input-buffer", "unowned-token-rows", "stage-skips-poststep"


def prompt(length: int, start: int) -> Prompt:
    """Token ids that differ from place to place and from prompt to prompt."""
    return Prompt(tokens=tuple((start * 37 + i * 13) % 500 + 5 for i in range(length)))


SEVERAL_CHUNKS = Case(task="embed", prompts=(prompt(40, 1), prompt(50, 2)))
ONE_CHUNK = Case(
    task="token_embed", normalize=False, prompts=tuple(prompt(12, i) for i in range(4))
)


class Judged(NamedTuple):
    """One case under one stream policy: what was judged and what attribution made of it."""

    pairs: list[PairRecord]
    findings: list[FindingRecord]

    def of(self, kind: FailureKind) -> list[FindingRecord]:
        return [f for f in self.findings if Signature.parse(f.signature).kind is kind]

    def only(self, kind: FailureKind) -> FindingRecord:
        (found,) = self.of(kind)
        return found


class Bench:
    """Owns: one engine a cell, for all tests here."""

    def __init__(self, folder: Path) -> None:
        path = path_of(NAME)
        self.system = EngineSystem(
            EngineOptions(
                model=path,
                chunk=PLAN.chunk,
                max_num_seqs=PLAN.max_num_seqs,
                max_model_len=PLAN.max_model_len,
            )
        )
        self.store = OutputStore(folder)
        self.reference = CaseReference(oracle=CachedOracle(path), checkpoint=checkpoint(NAME))
        self.executor = CaseExecutor(
            checkpoint=PLAN,
            system=self.system,
            reference=self.reference,
            store=self.store,
            attempts=1,
        )

    @contextmanager
    def planted(self, *faults: str) -> Iterator[None]:
        for name in faults:
            self.system.plant(FAULTS[name].plugin)
        try:
            yield
        finally:
            for name in faults:
                self.system.unplant(FAULTS[name].plugin)

    def campaign(
        self,
        case: Case,
        settings: Mapping[str, str],
        *plants: str,
        policies: Sequence[Mapping[str, str]] = POLICIES,
    ) -> Judged:
        """Run the case in every cell with these faults planted, judge it, ask for findings."""
        with self.planted(*plants):
            records = list(self.executor.run(case, settings))
            cases = executed(records)[NAME]
            bounds = Bounds()
            judge = CheckpointJudge(dtype="float32", causal=True, store=self.store, bounds=bounds)
            pairs = [r for r in judge.judge(cases) if isinstance(r, PairRecord)]
            found = find(
                cases,
                pairs,
                system=self.system,
                plan=PLAN,
                store=self.store,
                bounds=bounds,
                run_id="RUN",
                plants=[FAULTS[name].plugin for name in plants],
                oracle=self.reference,
                policies=policies,
                budget=Budget(calls=2000, seconds=300.0),
            )
            judged = Judged(pairs, list(found))
        failed = {pair.pair_id for pair in pairs if pair.outcome is Outcome.FAIL}
        covered = {pair_id for finding in judged.findings for pair_id in finding.pairs}
        assert failed == covered, "every failing pair belongs to a finding, and nothing else does"
        return judged

    def replays(self, finding: FindingRecord, *plants: str) -> bool:
        """Whether the finding still fails with these faults planted, and no others."""
        with self.planted(*plants):
            verdict = replay(finding, self.system)
        assert {row.outcome for row in verdict.rows} <= set(Outcome) - {Outcome.ERROR}
        return verdict.failing


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("run"))
    yield made
    made.system.close()


def lengths(finding: FindingRecord) -> list[int]:
    return [len(p["tokens"]) for p in finding.case["prompts"]]


@pytest.mark.parametrize(
    "policy", [COPY_LAGS, PACED, COMPUTE_LAGS], ids=lambda p: p["stream_policy"]
)
@pytest.mark.parametrize("case", [SEVERAL_CHUNKS, ONE_CHUNK], ids=lambda c: c.task)
def test_clean_engine_has_no_finding(bench: Bench, case: Case, policy: Mapping[str, str]) -> None:
    judged = bench.campaign(case, policy)
    assert not judged.findings
    assert Outcome.PASS in {pair.outcome for pair in judged.pairs}


def test_s1_needs_compile_and_three_chunks_where_the_device_is_paced(bench: Bench) -> None:
    finding = bench.campaign(SEVERAL_CHUNKS, PACED, S1).only(FailureKind.DIFFERENCE)
    assert finding.minimal_sets == (("chunk=chunked", "compile=compiled"),)
    assert lengths(finding) == [2 * PLAN.chunk + 1]
    assert (
        "smallest case: 1 prompt of 33 tokens, in chunks of 16 + 16 + 1 (at most 16 a step)"
        in finding.conditions
    )
    assert finding.title == (
        "embed differs when chunk=chunked AND compile=compiled (stream policy paced(1))"
    )
    assert "fails under lag(compute@last), fenced inputs with chunk=chunked" in finding.conditions
    assert len(finding.truth_table) == 16
    first = finding.first_divergence
    assert first is not None
    # The inputs of the first step are overwritten before the device reads them, so the embedding
    # of its tokens is already another's.
    assert (first.step, first.layer) == (0, 0)
    assert bench.replays(finding, S1)
    assert not bench.replays(finding)


def test_s1_needs_chunks_alone_where_the_device_lags(bench: Bench) -> None:
    finding = bench.campaign(SEVERAL_CHUNKS, COMPUTE_LAGS, S1).only(FailureKind.DIFFERENCE)
    assert finding.minimal_sets == (("chunk=chunked",),)
    assert lengths(finding) == [PLAN.chunk + 1]
    assert "stream_policy=lag(compute@last)" in finding.conditions
    # Two chunks are enough here; where the device is paced it takes three.
    quiet = "does not fail under lag(copy@last), fenced inputs; paced(1), fenced inputs"
    assert quiet in finding.conditions
    assert bench.replays(finding, S1)
    assert not bench.replays(finding)


def test_s2_needs_steps_that_overlap_and_a_prompt_of_one_chunk(bench: Bench) -> None:
    finding = bench.campaign(ONE_CHUNK, COPY_LAGS, S2).only(FailureKind.DIFFERENCE)
    assert finding.minimal_sets == (("async=async",), ("pp=2",))
    assert finding.task == "token_embed"
    assert finding.case["normalize"] is False
    assert max(lengths(finding)) <= PLAN.chunk
    assert {"chunk=chunked", "normalize=True"} <= set(finding.masked_by)
    assert "hidden when every prompt is split over steps" in finding.conditions
    first = finding.first_divergence
    assert first is not None
    assert first.layer == 4 + 1, "every hidden state agrees; the rows are lost on their way out"
    assert bench.replays(finding, S2)
    assert not bench.replays(finding)


def test_s3_needs_two_stages_and_several_steps(bench: Bench) -> None:
    judged = bench.campaign(SEVERAL_CHUNKS, COPY_LAGS, S3)
    (finding,) = judged.findings
    assert finding.minimal_sets == (("chunk=chunked", "pp=2"),)
    assert Signature.parse(finding.signature).policy == "any"
    assert lengths(finding) == [PLAN.chunk + 1]
    first = finding.first_divergence
    assert first is not None
    # The first stage places the second chunk at the positions of the first: block 0 is the first
    # to rotate by them.
    assert (first.step, first.chunk, first.layer, first.token) == (1, 1, 1, PLAN.chunk)
    assert bench.replays(finding, S3)
    assert not bench.replays(finding)


@pytest.mark.parametrize(
    ("fault", "case", "sets"),
    [
        (S1, SEVERAL_CHUNKS, (("chunk=chunked",),)),
        (S2, ONE_CHUNK, (("async=async",), ("pp=2",))),
    ],
    ids=[S1, S2],
)
def test_happens_before_tells_under_every_policy(
    bench: Bench, fault: str, case: Case, sets: tuple[tuple[str, ...], ...]
) -> None:
    """Under `immediate` nothing overlaps, so no number can differ, and the race is told all the
    same; the probes then run the same cells under every other policy."""
    judged = bench.campaign(case, IMMEDIATE, fault)
    assert not judged.of(FailureKind.DIFFERENCE)
    finding = judged.only(FailureKind.HAZARD)
    assert finding.minimal_sets == sets
    same = next(c for c in finding.conditions if c.startswith("the same sets also fail under"))
    assert all(policy["stream_policy"] in same for policy in POLICIES)
    assert bench.replays(finding, fault)
    assert not bench.replays(finding)
