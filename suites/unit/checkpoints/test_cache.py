"""The checkpoint cache: nobody reads half an entry, and a damaged one is rebuilt.

Passes wrongly if a changed file had the hash that it had before. Ruled out by
suites/meta/test_suites_can_fail.py: `all-files-have-the-same-hash`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from harness.checkpoints.cache import MANIFEST, CheckpointCache, cache_root, damage, manifest


def build(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")


@pytest.fixture
def lines() -> list[str]:
    return []


def fresh(tmp_path: Path) -> CheckpointCache:
    """A cache object as a new process would have it: nothing vouched for yet."""
    return CheckpointCache(root=tmp_path)


def test_entry_is_built_once_and_carries_a_manifest(tmp_path: Path, lines: list[str]) -> None:
    cache = fresh(tmp_path)
    folder = cache.entry("m", "r1", build, lines.append)
    assert manifest(folder).keys() == {"model.safetensors", "1_Pooling/config.json"}
    assert damage(folder) is None
    assert fresh(tmp_path).entry("m", "r1", _must_not_build, lines.append) == folder
    assert len(lines) == 1


def test_another_recipe_is_another_entry(tmp_path: Path) -> None:
    cache = fresh(tmp_path)
    assert cache.entry("m", "r1", build) != cache.entry("m", "r2", build)


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda f: (f / "model.safetensors").write_bytes(b"weightz"), "has sha256"),
        (lambda f: (f / "1_Pooling" / "config.json").unlink(), "is missing"),
        (lambda f: (f / "stray.bin").write_bytes(b""), "unexpected files"),
        (lambda f: (f / MANIFEST).unlink(), "never finished"),
        (lambda f: (f / MANIFEST).write_text('{"files": {'), "cannot be read"),
        (lambda f: (f / MANIFEST).write_text("[]"), "cannot be read"),
    ],
)
def test_damage_is_reported_and_rebuilt(
    tmp_path: Path, lines: list[str], harm: object, complaint: str
) -> None:
    folder = fresh(tmp_path).entry("m", "r1", build)
    assert callable(harm)
    harm(folder)
    assert complaint in (damage(folder) or "")
    assert not fresh(tmp_path).holds("m", "r1")
    assert fresh(tmp_path).entry("m", "r1", build, lines.append) == folder
    assert damage(folder) is None
    assert "rebuilding" in lines[0]
    assert complaint in lines[0]


def test_failed_build_publishes_nothing(tmp_path: Path) -> None:
    def half(folder: Path) -> None:
        build(folder)
        raise RuntimeError("the power went out")

    with pytest.raises(RuntimeError, match="power"):
        fresh(tmp_path).entry("m", "r1", half)
    folder = fresh(tmp_path).path("m", "r1")
    assert [p.name for p in folder.parent.iterdir()] == [".m.lock"]


def test_draft_of_a_dead_builder_is_cleared_away(tmp_path: Path) -> None:
    folder = fresh(tmp_path).path("m", "r1")
    abandoned = folder.parent / ".m.building-dead"
    abandoned.mkdir(parents=True)
    (abandoned / "model.safetensors").write_bytes(b"half")
    assert fresh(tmp_path).entry("m", "r1", build) == folder
    assert not abandoned.exists()


def test_builders_who_arrive_together_build_once(tmp_path: Path) -> None:
    built: list[Path] = []
    start = Barrier(4)

    def slowly(folder: Path) -> None:
        built.append(folder)
        build(folder)

    def arrive(_number: int) -> Path:
        start.wait()
        return fresh(tmp_path).entry("m", "r1", slowly)

    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(arrive, range(4)))
    assert len(built) == 1
    assert len(set(folders)) == 1


def test_environment_variable_moves_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "elsewhere"))
    assert cache_root() == tmp_path / "elsewhere"
    monkeypatch.delenv("PARITY_CACHE")
    assert cache_root() == Path.home() / ".cache" / "pooling-parity"


def _must_not_build(folder: Path) -> None:
    raise AssertionError(f"an intact entry was built again in {folder}")
