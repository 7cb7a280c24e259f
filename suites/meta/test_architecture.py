"""Who may import whom: the contracts of `pyproject.toml` hold, and each of them can break.

Every contract is broken once in a copy of the tree by an import that it exists to forbid. A copy
may hold modules that the project does not have yet: a contract binds them from their first day.

Passes wrongly if a contract could not be broken, or imports were not seen. Ruled out by
`test_import_contract_breaks`, `test_cycle_breaks_its_contract`, `test_foreign_imports_are_seen` and
`test_a_loaded_torch_is_seen`.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "harness", "reports", "suites")
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"
VERDICT_LINE = re.compile(r"^(?P<name>.+?) (?P<verdict>KEPT|BROKEN)\b", re.MULTILINE)


def python(code: str, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter that finds this project in `cwd` first."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


# ------------------------------------------------------------------------------- import contracts


def contract_names() -> dict[str, str]:
    """Contract id -> the name that import-linter prints."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {c["id"]: c["name"] for c in config["tool"]["importlinter"]["contracts"]}


def lint_imports(tree: Path) -> dict[str, bool]:
    """Contract name -> kept, as import-linter finds it in `tree`."""
    done = python(LINT_IMPORTS, tree, "--no-logo", "--no-cache")
    found = {m["name"]: m["verdict"] == "KEPT" for m in VERDICT_LINE.finditer(done.stdout)}
    expected = set(contract_names().values())
    assert set(found) == expected, f"expected one verdict for each contract, got:\n{done.stdout}"
    assert (done.returncode == 0) == all(found.values()), done.stdout
    return found


class Offence(NamedTuple):
    """An import that the contract `contract` forbids: written into `module`."""

    contract: str
    module: str
    imported: str


OFFENCES = [
    Offence("layers", "engine.offender", "harness.case"),
    Offence("layers", "harness.offender", "suites.meta"),
    Offence("engine-alone", "engine.offender", "transformers"),
    Offence("engine-alone", "engine.offender", "sentence_transformers"),
    Offence("engine-alone", "engine.offender", "hypothesis"),
    Offence("engine-alone", "engine.offender", "pytest"),
    Offence("engine-alone", "engine.offender", "reports"),
    Offence("engine-importers", "harness.judge.offender", "engine.plan"),
    Offence("engine-importers", "harness.cli.offender", "engine.plan"),
    Offence("engine-importers", "harness.systems.offender", "engine.plan"),
    Offence("server-importer", "engine.offender", "engine.server.config"),
    Offence("server-importer", "harness.systems.engine", "engine.server.config"),
    Offence("reports-read-records", "reports.offender", "harness.case"),
    Offence("reports-read-records", "reports.offender", "torch"),
    Offence("reports-read-records", "reports.offender", "engine.plan"),
    Offence("reports-read-records", "reports.offender", "pytest"),
    Offence("records-are-plain", "harness.record", "torch"),
    Offence("records-are-plain", "harness.case", "numpy"),
    Offence("references-independent", "harness.oracle.offender", "engine.plan"),
    Offence("references-independent", "harness.oracle.offender", "harness.systems.engine"),
    Offence("references-independent", "harness.systems.hf", "engine.plan"),
    Offence("references-independent", "harness.systems.sbert", "harness.systems.engine"),
    Offence("references-independent", "harness.systems.vllm", "engine.plan"),
    Offence("references-independent", "harness.systems.http", "engine.plan"),
    Offence("faults-unknown", "harness.judge.offender", "harness.faults.offended"),
    Offence("faults-unknown", "harness.strategies.offender", "harness.faults.offended"),
    Offence("faults-unknown", "harness.search.offender", "harness.faults.offended"),
    Offence("faults-unknown", "harness.attribution", "harness.faults.offended"),
    Offence("faults-unknown", "harness.localise", "harness.faults.offended"),
    Offence("faults-unknown", "harness.recall", "harness.faults.offended"),
    Offence("faults-unknown", "harness.known_cases", "harness.faults.offended"),
    Offence("faults-unknown", "harness.judge.offender", "harness.controls.offended"),
]


def write_import(tree: Path, module: str, imported: str) -> None:
    """Append `import imported` to `module` in `tree`, making what is missing of either."""
    for name, line in ((imported, ""), (module, f"\nimport {imported}\n")):
        top, *rest = name.split(".")
        if top not in PACKAGES:
            continue
        package = tree / top
        for part in rest[:-1]:
            package /= part
            package.mkdir(exist_ok=True)
            (package / "__init__.py").touch()
        if rest and not (package / rest[-1]).is_dir():
            with (package / f"{rest[-1]}.py").open("a") as source:
                source.write(line)
        elif line:
            with (package.joinpath(*rest[-1:]) / "__init__.py").open("a") as source:
                source.write(line)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the project's own modules, with what import-linter reads."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_import_contracts_are_kept() -> None:
    broken = [name for name, kept in lint_imports(ROOT).items() if not kept]
    assert not broken, f"broken contracts: {broken}; `make arch` shows the imports"


@pytest.mark.parametrize("offence", OFFENCES, ids=lambda o: f"{o.contract}:{o.module}:{o.imported}")
def test_import_contract_breaks(tree: Path, offence: Offence) -> None:
    if offence.imported == "harness.systems.engine":
        # The engine is reached through a module that may know it.
        write_import(tree, "harness.systems.engine", "engine.plan")
    write_import(tree, offence.module, offence.imported)
    name = contract_names()[offence.contract]
    assert not lint_imports(tree)[name], f"{offence} left the contract {name!r} unbroken"


def test_cycle_breaks_its_contract(tree: Path) -> None:
    write_import(tree, "harness.one", "harness.other")
    write_import(tree, "harness.other", "harness.one")
    assert not lint_imports(tree)[contract_names()["acyclic"]]


def test_every_contract_is_broken_once() -> None:
    assert {o.contract for o in OFFENCES} | {"acyclic"} == set(contract_names())


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("reports.offender", "harness.record"),
        ("harness.checkpoints.offender", "engine.plan"),
        ("harness.cli.serve", "engine.plan"),
        ("harness.cli.serve", "engine.server.config"),
        ("harness.faults.offender", "engine.plan"),
        ("harness.controls.offender", "engine.plan"),
        ("harness.systems.engine", "engine.plan"),
        ("harness.systems.engine_facts", "engine.plan"),
        ("suites.unit.offender", "engine.plan"),
    ],
)
def test_contracts_allow_what_the_design_allows(tree: Path, module: str, imported: str) -> None:
    write_import(tree, module, imported)
    assert all(lint_imports(tree).values())


# ------------------------------------------------------------------------- standard library only


def foreign_imports(source: str) -> set[str]:
    """Top-level packages that `source` imports from outside the standard library."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    plain = {"harness.case", "harness.record"}
    ours = {n for n in names if n in plain or n.startswith("harness.record.")}
    return {n for n in names - ours if n.split(".")[0] not in sys.stdlib_module_names}


RECORDS = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "harness/record").glob("*.py"))


def test_every_module_of_the_records_is_read() -> None:
    assert {"harness/record/__init__.py", "harness/record/writer.py"} <= set(RECORDS)


@pytest.mark.parametrize("path", [*RECORDS, "harness/case.py"])
def test_records_and_cases_need_the_standard_library_only(path: str) -> None:
    assert not foreign_imports((ROOT / path).read_text())


def test_foreign_imports_are_seen() -> None:
    source = "import json, attrs\nfrom harness.judge import x\nfrom . import y\nimport harness.case"
    assert foreign_imports(source) == {"attrs", "harness.judge", "."}


# ------------------------------------------------------------------------------ light to import


def loads_torch(statement: str) -> bool:
    """Whether `statement`, alone in a fresh interpreter, loads torch."""
    done = python(f"import sys\n{statement}\nprint('torch' in sys.modules)", ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() == "True"


@pytest.mark.parametrize(
    "module", ["reports", "harness.record", "harness.case", "harness", "harness.cli.app"]
)
def test_import_does_not_load_torch(module: str) -> None:
    assert not loads_torch(f"import {module}")


def test_a_loaded_torch_is_seen() -> None:
    assert loads_torch("import torch")
