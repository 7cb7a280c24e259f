"""Every suite file says how it could pass wrongly, and a planted break shows that it would not.

A break replaces one thing in the code under test (`suites/meta/breaks`); the suite file is then run
in a process of its own and a named test must fail, by an assertion. All of them run nightly.

Passes wrongly if a run counted as red whatever came of it. Ruled out by
`test_what_is_no_red_is_told`, `test_a_break_that_breaks_nothing_is_told`.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from suites.meta.breaks import BREAKS
from suites.meta.planting.defect import Break
from suites.meta.planting.install import PACKAGES, ROOT, holder_of
from suites.meta.planting.outcome import Outcome
from suites.meta.planting.zygote import Zygote, zygote

HERE: Final = "suites/meta/test_suites_can_fail.py"
SUITES: Final = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "suites").rglob("test_*.py")
)
CLAIM: Final = re.compile(r"Passes wrongly if (.+?)\. Ruled out by (.+)\.")
QUOTED: Final = re.compile(r"`([^`]+)`")
ELSEWHERE: Final = re.compile(r"(suites/[\w/]+\.py)::([\w:]+)")
ALWAYS: Final = ("ledger-never-complains", "freed-blocks-are-lost")
"""Breaks that run in `make test`: a second each."""
TOGETHER: Final = pytest.mark.xdist_group("breaks")
"""With one process that imports torch for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What a suite file says of itself, and the tests it has."""

    path: str
    claim: str | None
    proof: str
    tests: frozenset[str]


def named_tests(nodes: list[ast.stmt], prefix: str) -> Iterator[str]:
    """Test functions, those of a class as `Class::function`."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test_"):
                yield prefix + node.name
        elif isinstance(node, ast.ClassDef):
            yield from named_tests(node.body, f"{node.name}::")


def read(path: str, source: str) -> Suite:
    """Read a suite file; the claim is the last paragraph of its docstring."""
    tree = ast.parse(source)
    last = (ast.get_docstring(tree) or "").split("\n\n")[-1]
    found = CLAIM.fullmatch(" ".join(last.split()))
    claim, proof = found.groups() if found else (None, "")
    return Suite(path=path, claim=claim, proof=proof, tests=frozenset(named_tests(tree.body, "")))


@cache
def suite(path: str) -> Suite:
    return read(path, (ROOT / path).read_text(encoding="utf-8"))


def lacks(found: Suite) -> str | None:
    """What is wrong with a file's paragraph; None: it names a proof, and the proof exists."""
    quoted = QUOTED.findall(found.proof)
    elsewhere = ELSEWHERE.findall(found.proof)
    mine = {planted.name for planted in BREAKS.values() if planted.suite == found.path}
    named = {name for name in quoted if not name.startswith("test_")}
    if found.claim is None:
        return (
            "expected the docstring's last paragraph to be 'Passes wrongly if ... . Ruled out by "
            f"{HERE}: `a-break`.', or by `test_in_this_file`, or by suites/path.py::test"
        )
    if not quoted and not elsewhere:
        return f"expected a break or a test after 'Ruled out by', got {found.proof!r}"
    if named != mine:
        return f"expected the breaks of this file, {sorted(mine)}, got {sorted(named)}"
    if named and HERE not in found.proof:
        return f"expected {HERE}: before the names of breaks, got {found.proof!r}"
    tests = {(found.path, name) for name in quoted if name.startswith("test_")}
    for path, name in tests | set(elsewhere):
        if not (ROOT / path).is_file() or name not in suite(path).tests:
            return f"expected a test that exists, got {path}::{name}"
    return None


@pytest.fixture(scope="module")
def process() -> Iterator[Zygote]:
    with zygote() as started:
        yield started


def wrong(process: Zygote, name: str, folder: Path) -> str | None:
    """Run a break; what kept it from being red."""
    planted = BREAKS[name]
    if planted.needs == "cuda" and not importlib.import_module("torch").cuda.is_available():
        pytest.skip(f"{planted.suite} is skipped without a device")
    return process.run(name, folder).why_not_red(planted)


def test_every_suite_says_how_it_could_pass_wrongly() -> None:
    found = [suite(path) for path in SUITES]
    assert len(found) > 1
    assert not {one.path: why for one in found if (why := lacks(one))}


def binds(node: ast.stmt, name: str) -> bool:
    """Whether a statement gives something this name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.Import | ast.ImportFrom):
        return name in [(a.asname or a.name).partition(".")[0] for a in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return name in [found.id for found in targets if isinstance(found, ast.Name)]


def exists(at: str) -> bool:
    """Whether a target is there, read from the source: importing all of them takes seconds."""
    module, _, path = at.partition(":")
    if module.partition(".")[0] not in PACKAGES:
        holder, name = holder_of(importlib.import_module(module), path)
        return hasattr(holder, name)
    place = ROOT.joinpath(*module.split("."))
    file = next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)
    if file is None:
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    *owners, last = path.split(".")
    for owner in owners:
        body = next((n.body for n in body if isinstance(n, ast.ClassDef) and n.name == owner), [])
    return any(binds(node, last) for node in body)


def misplaced(planted: Break) -> str | None:
    """What a break names and nobody has; None: all of it is there."""
    if planted.suite not in SUITES or planted.red not in suite(planted.suite).tests:
        return f"expected a test that exists, got {planted.suite}::{planted.red}"
    return None if exists(planted.at) else f"expected a target that exists, got {planted.at}"


def test_every_break_names_what_exists() -> None:
    assert not {name: why for name, planted in BREAKS.items() if (why := misplaced(planted))}


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "suites/test_none.py"},
        {"red": "test_none"},
        *({"at": at} for at in ("engine.kv:none", "engine.none:x", "engine.buffers:Slots.none")),
    ],
)
def test_a_break_of_nothing_is_told(change: dict[str, str]) -> None:
    assert "that exists" in str(misplaced(replace(BREAKS[ALWAYS[0]], **change)))


def imports(source: str) -> set[str]:
    """Packages of ours that a module imports at its top."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] in PACKAGES}


def test_tables_of_breaks_import_nothing_of_the_code_under_test() -> None:
    assert imports("import engine.kv\nfrom harness import case") == {"engine.kv", "harness"}
    tables = (ROOT / "suites/meta/breaks").glob("*.py")
    found = {path.name: imports(path.read_text(encoding="utf-8")) for path in tables}
    assert len(found) > 1
    ours = ("suites.meta.planting",)
    assert not {p: n for p, n in found.items() if any(not x.startswith(ours) for x in n)}


@TOGETHER
@pytest.mark.parametrize("name", ALWAYS)
def test_a_broken_suite_is_red_at_once(process: Zygote, name: str, tmp_path: Path) -> None:
    assert wrong(process, name, tmp_path) is None


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in BREAKS if name not in ALWAYS])
def test_a_broken_suite_is_red(process: Zygote, name: str, tmp_path: Path) -> None:
    assert wrong(process, name, tmp_path) is None


@TOGETHER
def test_a_break_that_breaks_nothing_is_told(process: Zygote, tmp_path: Path) -> None:
    """The same run, held to a test that the break leaves alone."""
    planted = BREAKS[ALWAYS[0]]
    found = process.run(planted.name, tmp_path)
    assert found.why_not_red(planted) is None
    told = found.why_not_red(replace(planted, red="test_blocks_for_rounds_up"))
    assert told is not None
    assert "expected suites/unit/kv/test_blocks.py::test_blocks_for_rounds_up to fail" in told


PLANTED: Final = Break(name="x", suite="suites/x.py", red="test_x", at="a:b", instead=lambda a: a)
RED: Final = Outcome(
    exit=1, failed={"suites/x.py::test_x[1]": ["AssertionError"]}, errors=[], output="", seconds=1
)


def test_a_named_test_that_fails_by_an_assertion_is_red() -> None:
    assert RED.why_not_red(PLANTED) is None


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (replace(RED, exit=0, failed={}), "exit status 0"),
        (replace(RED, exit=4, failed={}), "exit status 4"),
        (replace(RED, failed={"suites/x.py::test_y": ["AssertionError"]}), "test_y"),
        (replace(RED, failed={"suites/x.py::test_x": ["TypeError"]}), "does the break fit?"),
        (replace(RED, failed={"suites/x.py::test_x": ["XPASS"]}), "does the break fit?"),
        (replace(RED, errors=["setup of test_x"]), "errors outside tests"),
    ],
)
def test_what_is_no_red_is_told(outcome: Outcome, told: str) -> None:
    assert told in str(outcome.why_not_red(PLANTED))


@pytest.mark.parametrize(
    ("docstring", "told"),
    [
        ("What it is.", "last paragraph"),
        ("It.\n\nPasses wrongly if so. Ruled out by hope.", "a break or a test"),
        (f"It.\n\nPasses wrongly if so. Ruled out by {HERE}: `none`.", "the breaks of this file"),
        ("It.\n\nPasses wrongly if so. Ruled out by `test_none`.", "a test that exists"),
        (f"It.\n\nPasses wrongly if so. Ruled out by {HERE}::test_none.", "a test that exists"),
    ],
)
def test_a_paragraph_without_proof_is_told(docstring: str, told: str) -> None:
    assert told in str(lacks(read("suites/x.py", f'"""{docstring}\n"""')))
