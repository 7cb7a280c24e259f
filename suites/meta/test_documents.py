"""ARCHITECTURE.md names only what exists: prose about code drifts, so its names are checked.

Read as names are what stands in backticks and looks like a path, a dotted module, or a class.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "harness", "reports", "suites")
QUOTED = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"\.?[\w.-]+(/[\w.-]*)+|[\w-]+\.(md|toml|lock|py)")
MODULE = re.compile(rf"({'|'.join(PACKAGES)})(\.\w+)+")
CLASS = re.compile(r"[A-Z][a-z0-9]+([A-Z][a-z0-9]*)*")
MADE_AT_RUN_TIME = (".parity/", ".venv/")


def classes() -> set[str]:
    """Every class that the project defines, and its nested names of module level."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            nodes = ast.walk(ast.parse(path.read_text()))
            found |= {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    return found


def module_exists(name: str) -> bool:
    """Whether `name` is a module, or something that a module of ours defines at its top level."""
    path = ROOT.joinpath(*name.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    owner = next(
        (p for p in (path.parent.with_suffix(".py"), path.parent / "__init__.py") if p.is_file()),
        None,
    )
    return owner is not None and re.search(rf"\b{path.name}\b", owner.read_text()) is not None


def names(text: str) -> dict[str, str]:
    """Quoted name -> `path`, `module` or `class`; other quoted text is left alone."""
    kinds = {"path": PATH, "module": MODULE, "class": CLASS}
    return {
        quoted: kind
        for quoted in QUOTED.findall(FENCED.sub("", text))
        for kind, pattern in reversed(kinds.items())
        if pattern.fullmatch(quoted) and not quoted.startswith(MADE_AT_RUN_TIME)
    }


def missing(text: str) -> list[str]:
    """Names in `text` that the project does not have."""
    exists = {
        "path": lambda name: (ROOT / name).exists(),
        "module": module_exists,
        "class": classes().__contains__,
    }
    return [name for name, kind in names(text).items() if not exists[kind](name)]


def test_architecture_names_what_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert {"path", "module", "class"} <= set(names(text).values()), "a kind of name is not read"
    assert not missing(text)


@pytest.mark.parametrize(
    "name", ["engine/no_such_file.py", "NO-SUCH-PAGE.md", "engine.no_such_module", "NoSuchClass"]
)
def test_a_missing_name_is_seen(name: str) -> None:
    assert missing(f"The room `{name}` owns it.") == [name]


def test_other_quoted_text_is_left_alone() -> None:
    assert not names("`make parity`, `MKL_CBWR`, `--clean`, `.parity/runs/ID/run.json`, `0 ulp`")
