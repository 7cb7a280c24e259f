"""The adapter and the test of the documents work exactly as shown, in a stranger's tree.

Passes wrongly if the shown commands took any answers from the template, whichever prompt they
belong to. Ruled out by suites/meta/test_suites_can_fail.py: `a-template-turns-its-answers-round`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness.cli.app import run_app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "your-own-engine.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r'"""([\w.]+): ')

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.xdist_group("tiny-qwen3")


def shown() -> dict[str, str]:
    """Every Python file that the document shows, by the name that its first line gives."""
    blocks = BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))
    return {NAME.match(code)[1]: code for code in blocks}  # type: ignore[index]


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The adapter, as a file in an empty working folder."""
    code = shown()["my_engine.py"]
    (tmp_path / "my_engine.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return code


@pytest.fixture
def stranger(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A tree of another project, where this one is installed: found by its entry points alone."""
    site = pytester.mkdir("site-packages")
    info = site / "pooling_parity-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pooling-parity\nVersion: 0.1.0\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = [f"{k} = {v}" for k, v in project["entry-points"]["pytest11"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *points, ""]))
    monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT}")
    monkeypatch.setenv("PARITY_HOME", str(pytester.path / ".parity"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makefile(".ini", pytest="[pytest]\naddopts = -p no:cacheprovider\n")
    for name, code in shown().items():
        (pytester.path / name).write_text(code, encoding="utf-8")
    return pytester


def test_it_is_about_thirty_lines(template: str) -> None:
    lines = [line for line in template.splitlines() if line.strip()]
    assert len(lines) <= 35


def test_the_shown_commands_pass(template: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^parity (.*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    assert run_app(commands[0].split()) == 0, capsys.readouterr().out
    told = capsys.readouterr().out
    assert "refused  pp=2: pp=2: it runs on one device" in told
    assert "BROKEN" not in told
    assert run_app([*commands[1].split(), "--size", "cases=2"]) == 0, capsys.readouterr().out


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


FEW = ("cases=20", "cases=2")


@pytest.mark.nightly
def test_the_shown_test_passes_in_a_strangers_tree(stranger: pytest.Pytester) -> None:
    edit(stranger.path / "test_my_engine.py", FEW)
    done = stranger.runpytest_subprocess("-rP", "test_my_engine.py")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["parity: *my_engine.py:make, tiny-qwen3 agrees; report: *.html"])
    (report,) = (stranger.path / ".parity" / "runs").glob("*/report.html")
    assert "Same answers in every way it was run" in report.read_text()


@pytest.mark.nightly
def test_a_wrong_engine_fails_and_says_what_differs(stranger: pytest.Pytester) -> None:
    """Its chunks are attested, and the first token of the last one is forgotten."""
    edit(
        stranger.path / "my_engine.py",
        ("    why_not =", '    values = {"chunk": ("chunked",)}\n    why_not ='),
        (
            "            account.step([(index, 0, length, length)], rows=length)\n",
            "            most = 16 if cell.get('chunk') == 'chunked' else length\n"
            "            for start in range(0, length, most):\n"
            "                count = min(most, length - start)\n"
            "                account.step([(index, start, count, length)], rows=count)\n"
            "            if most < length:\n"
            "                row = torch.roll(row, 1)\n",
        ),
    )
    edit(stranger.path / "test_my_engine.py", ("cases=20", "cases=3, only=['chunk', 'pp']"))
    done = stranger.runpytest_subprocess("test_my_engine.py")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*my_engine.py:make, tiny-qwen3: The answers depend on how it is run",
            "* embed differs when chunk=chunked *",
            "*Fails when chunk=chunked.*",
            "*see it again: parity replay F-* --run *",
            "report: *report.html",
            "again:  parity run --profile smoke *--only chunk,pp*--system *my_engine.py:make*",
        ]
    )
    assert "Traceback" not in done.stdout.str()
    (path,) = re.findall(r"report: (\S+)", done.stdout.str())
    assert Path(path).is_file()


def test_what_cannot_be_judged_is_a_message(stranger: pytest.Pytester) -> None:
    stranger.makepyfile(
        test_mistakes="""
        def test_a_local_factory(parity):
            parity.check(lambda assignment: None)

        def test_an_unknown_name(parity):
            parity.check("no-such-engine")

        def test_an_unknown_model(parity):
            parity.check("engine", model="tiny-qwen4")
        """
    )
    done = stranger.runpytest_subprocess("test_mistakes.py")
    done.assert_outcomes(failed=3)
    done.stdout.fnmatch_lines(
        [
            "*parity.check expects a factory that a worker process can import, got <function*",
            "*system 'no-such-engine' is unknown; valid: engine, hf*",
            "*unknown model 'tiny-qwen4'; valid: tiny-qwen3*",
        ]
    )
    assert "Traceback" not in done.stdout.str()


def test_the_fixture_costs_a_stranger_nothing(stranger: pytest.Pytester) -> None:
    """The plug-in is loaded in every run of every project on the machine."""
    stranger.makepyfile(
        test_bare="""
        import sys
        from hypothesis import settings

        def test_it():
            assert "harness.pytest_fixture" in sys.modules
            heavy = {"torch", "transformers", "harness.cli", "harness.pytest_plugin"}
            assert not heavy & set(sys.modules)
            assert settings.get_current_profile_name() in ("default", "ci")  # Hypothesis' own
        """
    )
    stranger.runpytest_subprocess("test_bare.py").assert_outcomes(passed=1)
