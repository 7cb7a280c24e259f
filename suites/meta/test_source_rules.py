"""House rules that are read off the source: telling module names, and no file that can run code.

Passes wrongly if the rules' readers saw nothing. Ruled out by `test_empty_module_names_are_seen`
and `test_pickling_is_seen`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "harness", "reports", "suites")
EMPTY_NAMES = {"common", "helpers", "misc", "utils"}
PICKLERS = {"_pickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
TORCH_PICKLERS = {"torch.load", "torch.save"}


def modules(tree: Path) -> Iterator[Path]:
    """Every module of the project in `tree`, and the root conftest."""
    for package in PACKAGES:
        yield from sorted((tree / package).rglob("*.py"))
    yield from tree.glob("conftest.py")


def empty_names(tree: Path) -> list[str]:
    """Modules and packages whose name says nothing about what they own."""
    return [
        path.relative_to(tree).as_posix()
        for path in modules(tree)
        if EMPTY_NAMES & {part.strip("_") for part in path.relative_to(tree).with_suffix("").parts}
    ]


def pickling(source: str) -> list[str]:
    """Uses of pickle, under whatever name it was imported, as `line: name`."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    used: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                aliases[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                if alias.name.split(".")[0] in PICKLERS:
                    used.append((node.lineno, alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            used += [(node.lineno, name) for name in full if name in TORCH_PICKLERS]
            if node.module.split(".")[0] in PICKLERS:
                used.append((node.lineno, node.module))
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            used.append((node.value.lineno, "allow_pickle"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{aliases.get(node.value.id, node.value.id)}.{node.attr}"
            if name in TORCH_PICKLERS:
                used.append((node.lineno, name))
    return [f"{line}: {name}" for line, name in sorted(used)]


def test_module_names_tell_what_they_own() -> None:
    assert not empty_names(ROOT)


@pytest.mark.parametrize(
    "name", ["engine/utils.py", "harness/misc/x.py", "suites/unit/_helpers.py"]
)
def test_empty_module_names_are_seen(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert empty_names(tmp_path) == [name]


def test_nothing_pickles() -> None:
    paths = list(modules(ROOT))
    assert len(paths) > len(PACKAGES)
    found = {p.relative_to(ROOT).as_posix(): pickling(p.read_text()) for p in paths}
    assert not {path: uses for path, uses in found.items() if uses}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import joblib",
        "import torch\ntorch.load('x')",
        "import torch as t\nt.save(1, 'x')",
        "from torch import load",
        "import numpy\nnumpy.load('x', allow_pickle=True)",
    ],
)
def test_pickling_is_seen(source: str) -> None:
    assert pickling(source)


def test_reading_safetensors_is_not_pickling() -> None:
    assert not pickling("from safetensors.torch import load, save_file\nload(b'')")
