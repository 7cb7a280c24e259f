"""`parity doctor`: what is missing comes with what to do, and only what is needed is fatal.

Passes wrongly if a compiler that is there and does not work was never met. Ruled out by
suites/meta/test_suites_can_fail.py: `a-compiler-is-found-and-not-tried`.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from torch._inductor import config as inductor
from torch._inductor import cpp_builder

from harness.cli import doctor, main
from harness.cli.doctor import Check

ROOT = Path(__file__).resolve().parents[3]
NAMES = {
    "python",
    "cores",
    "memory",
    "cache",
    "torch",
    "libraries",
    "c++ compiler",
    "MKL_CBWR",
    "batch invariance",
    "gpu",
    "package registry",
    "checkpoints",
}


@pytest.fixture(autouse=True)
def no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip has nowhere to ask, as on a machine without a network."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


def checks(capsys: pytest.CaptureFixture[str], *, code: int) -> dict[str, Check]:
    assert main(["doctor", "--json"]) == code
    found = [Check(**data) for data in json.loads(capsys.readouterr().out)]
    assert {check.name for check in found} == NAMES
    assert all(check.ok or check.remedy for check in found), "what is missing says what to do"
    return {check.name: check for check in found}


def test_a_machine_that_runs_these_tests_is_fit(capsys: pytest.CaptureFixture[str]) -> None:
    found = checks(capsys, code=0)
    assert all(check.ok for check in found.values() if check.needed)
    assert found["MKL_CBWR"].found.startswith("MKL says ")
    assert not found["package registry"].ok, "there is none here, and that is no error"


def test_without_a_compiler_it_is_unfit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    compiler = checks(capsys, code=2)["c++ compiler"]
    assert not compiler.ok
    assert "Install g++ or clang, set CXX, or use mode='eager'" in compiler.remedy


def test_a_compiler_that_cannot_compile_is_unfit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler_on_path(
        tmp_path, monkeypatch, "echo 'fatal error: Python.h: No such file' >&2; exit 1"
    )
    compiler = checks(capsys, code=2)["c++ compiler"]
    assert "cannot compile what torch generates: fatal error: Python.h" in compiler.remedy


def test_a_compiler_that_does_not_run_is_unfit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler_on_path(tmp_path, monkeypatch, "exit 1", version="exit 1")
    compiler = checks(capsys, code=2)["c++ compiler"]
    assert (compiler.found, compiler.ok) == ("none", False)
    assert "No working C++ compiler found" in compiler.remedy
    assert "Install g++ or clang, set CXX, or use mode='eager'" in compiler.remedy


def compiler_on_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch, compile_: str, *, version: str = "exit 0"
) -> None:
    """The only compiler is a script. torch looks for one once a process, and has to look again."""
    script = folder / Path(inductor.cpp.cxx[-1]).name
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {version}\n{compile_}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(
        cpp_builder, "cpp_compiler_search", cpp_builder.cpp_compiler_search.__wrapped__
    )


def test_a_person_reads_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^python +ok +3\.\d+\.\d+$", out, re.MULTILINE)
    assert re.search(r"^package registry +missing +not reached: .+\n +-> only fetching", out, re.M)
    assert not err


def test_what_is_needed_and_missing_is_told_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = Check(name="python", ok=False, found="2.7", remedy="use 3.11", needed=True)
    merely = Check(name="gpu", ok=False, found="none", remedy="buy one")
    monkeypatch.setattr(doctor, "examine", lambda: iter([lacking, merely]))
    assert main(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert re.search(r"^python +MISSING +2\.7\n +-> use 3\.11$", out, re.MULTILINE)
    assert re.search(r"^gpu +missing +none\n +-> buy one$", out, re.MULTILINE)
    assert err == "parity: `parity run` needs what is missing: python\n"


def test_a_cache_that_cannot_be_written_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "file"))
    check = doctor._disk()
    assert (check.ok, check.needed) == (False, True)
    assert "cannot be written" in check.found
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "not" / "yet" / "made"))
    assert not doctor._disk().needed


def test_memory_is_read_where_the_system_tells(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       16 kB\nMemAvailable:    2000000 kB\n")
    short = doctor._memory(told)
    assert (short.ok, short.found) == (False, "2.0 GB available")
    assert "--workers 1" in short.remedy
    assert not short.needed
    assert doctor._memory(tmp_path / "absent").ok


def test_a_missing_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    present = doctor.metadata_version
    monkeypatch.setattr(
        doctor, "metadata_version", lambda name: None if name == "safetensors" else present(name)
    )
    torch, libraries = doctor._libraries()
    assert torch.ok
    assert (libraries.ok, libraries.needed) == (False, True)
    assert libraries.found == "missing: safetensors"


def test_a_registry_that_does_not_answer_is_given_up() -> None:
    def silent(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired(command, 10)

    check = doctor._registry(silent)
    assert (check.ok, check.needed) == (False, False)
    assert check.found == "not reached: no answer in 10 s"


def test_the_pythons_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (first, last) = doctor.PYTHONS[0], doctor.PYTHONS[-1]
    expected = f">={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"
    assert project["requires-python"] == expected
