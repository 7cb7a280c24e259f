"""`parity search` finds a planted defect, keeps what it found, and says where it looked.

Passes wrongly if the search found a failing case without the plant as well. Ruled out by
suites/meta/test_suites_can_fail.py: `a-search-forgets-the-plant`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaign.corpus import read_cases
from suites.contract.command import parity


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_the_hardest_cases_join_a_corpus(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITY_HOME", str(tmp_path))
    asked = ("search", "--examples", "6", "--plant", "stage-skips-poststep", "--seed", "2")
    answer = parity(capfd, *asked)
    assert answer.code == 1, answer.told
    assert "tiny-qwen3: about 6 cases, seed 2" in answer.told
    corpus = tmp_path / "corpus" / "tiny-qwen3.jsonl"
    kept = [case.case_id for case in read_cases(corpus)]
    assert kept
    assert len(set(kept)) == len(kept)
    assert not list(corpus.parent.glob("*.part"))


def test_an_unknown_model_is_told_the_known_ones(capfd: pytest.CaptureFixture[str]) -> None:
    answer = parity(capfd, "search", "--model", "tiny-qwen4")
    assert answer.code == 2
    assert "unknown model 'tiny-qwen4'; valid: tiny-qwen3" in answer.told
