"""Trials end to end: a planted fault is detected, a perturbation explained to the row.

Of what is planted `harness/trials/bench.py` gets a plug-in's name and nothing else.

Passes wrongly if the trial read what was planted before it judges, or called every explanation
exact. Ruled out by `test_nothing_is_found_where_nothing_is_planted` and
`test_a_wrong_explanation_is_not_called_exact`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.campaign.profile import FENCED_COPY_LAGS
from harness.case import Case, Prompt
from harness.faults import fault
from harness.faults.perturbation import Perturbation
from harness.record import Outcome
from harness.trials import explanation
from harness.trials.bench import TrialBench, fails
from harness.trials.detection import detect
from harness.trials.ledger import Ledger

pytestmark = pytest.mark.xdist_group("tiny-qwen3")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrialBench]:
    found = TrialBench("tiny-qwen3", tmp_path_factory.mktemp("trial"))
    found.start()
    yield found
    found.close()


def test_nothing_is_found_where_nothing_is_planted(bench: TrialBench) -> None:
    assert not fails(bench.judged(bench.cases(0)[0], FENCED_COPY_LAGS)[1])


def test_one_split_prompt_is_not_vacuous(bench: TrialBench) -> None:
    """It must be split, and async cannot act on the one step that gives an answer."""
    case = Case(task="embed", prompts=(Prompt(tokens=tuple(range(5, 5 + bench.chunk + 1))),))
    _, pairs = bench.judged(case, FENCED_COPY_LAGS)
    counts = Counter(pair.outcome for pair in pairs)
    assert not counts[Outcome.VACUOUS]
    assert counts[Outcome.PASS] > 10
    told = {pair.reason for pair in pairs if {"chunk", "async"} <= set(pair.axes)}
    assert all("async=async cannot act" in reason for reason in told)


def test_a_wrong_baseline_is_no_measure_of_rounding(bench: TrialBench) -> None:
    """One prompt of one token, made wrong, does not excuse a longer one in the next case."""
    with bench.planted(fault("one-row-step-repeats").plugin):
        for length in (1, bench.chunk + 1):
            case = Case(task="embed", prompts=(Prompt(tokens=tuple(range(5, 5 + length))),))
            assert fails(bench.judged(case, FENCED_COPY_LAGS)[1]), length


def test_detection_goes_on_where_it_stopped(bench: TrialBench, tmp_path: Path) -> None:
    plugin = fault("stage-skips-poststep").plugin
    ledger = Ledger(tmp_path / "detection.jsonl")
    (row,) = detect(bench, ledger, {"s3": plugin}, [0])
    assert row["found"]
    assert row["cases"] >= 1
    again = list(detect(bench, Ledger(ledger.path), {"s3": "no.such:plugin"}, [0]))
    assert again == [row]  # read from the ledger: the plug-in would have raised


def test_a_perturbation_is_explained(
    bench: TrialBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Perturbation(layer=1, token=18, milli=100, axes=("chunk", "pp"))
    monkeypatch.setattr(explanation, "drawn", lambda seed, **_: planted)
    ledger = Ledger(tmp_path / "explanation.jsonl")
    (row,) = explanation.explain(bench, ledger, [0], num_layers=4)
    assert row["exposed"]
    assert row["axes_exact"]
    assert row["minimal"]
    assert row["localised"]


def test_a_wrong_explanation_is_not_called_exact(
    bench: TrialBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is planted and what the trial believes was planted differ in layer and switches."""
    planted = Perturbation(layer=1, token=18, milli=100, axes=("chunk",))
    believed = Perturbation(layer=2, token=18, milli=100, axes=("pp",))
    monkeypatch.setattr(explanation, "drawn", lambda seed, **_: believed)
    with _instead(bench, planted):
        ledger = Ledger(tmp_path / "explanation.jsonl")
        (row,) = explanation.explain(bench, ledger, [0], num_layers=4)
    assert row["exposed"]
    assert not row["axes_exact"]
    assert not row["localised"]
    assert row["layer_off"] == -1


@contextmanager
def _instead(bench: TrialBench, planted: Perturbation) -> Iterator[None]:
    """The bench plants this, whatever it is asked for."""
    original = bench.planted
    bench.planted = lambda _: original(planted.plugin)  # type: ignore[method-assign,assignment]
    yield
    del bench.planted
