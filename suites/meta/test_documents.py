"""The documents name only what exists: prose about code drifts, so what it names is checked.

Three kinds of name are read. What stands in backticks and looks like a path, a dotted module or a
class; command lines of `parity` and of `make`, quoted or in a block; and the targets of links.

Passes wrongly if names, commands and links were not read off the documents. Ruled out by
`test_a_missing_name_is_seen`, `test_a_command_that_does_not_exist_is_seen` and
`test_a_link_that_leads_nowhere_is_seen`.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.exceptions import TyperException

from harness.axes import ALL_AXES
from harness.campaign.profile import PROFILES
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.cli.app import app
from harness.faults import FAULTS
from harness.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "harness", "reports", "suites")
# Not CHANGELOG.md: it tells of what was, and may name what is gone.
DOCUMENTS = tuple(
    str(path.relative_to(ROOT))
    for path in (
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *sorted((ROOT / "docs").glob("**/*.md")),
    )
)
QUOTED = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
PATH = re.compile(r"\.?[\w.-]+(/[\w.-]*)+|[\w-]+\.(md|toml|lock|py)")
MODULE = re.compile(rf"({'|'.join(PACKAGES)})(\.\w+)+")
CLASS = re.compile(r"[A-Z][a-z0-9]+([A-Z][a-z0-9]*)*")
PARITY = re.compile(r"(?:(?<![\w-])parity|-m harness)(?<!make parity) +([^`\n]+)")
MAKE = re.compile(r"(?<![\w-])make ([a-z]+(?:-[a-z]+)*)")
PROFILE_ROW = re.compile(
    r"^\|[^|]*\| ([\w-]+)[^|]*\| (\d+)[^|]*\| (\d+)[^|]*\|[^|]*\|$", re.MULTILINE
)
PLACEHOLDER = re.compile(r"[A-Z]+")
MADE_AT_RUN_TIME = (".parity/", ".venv/", "parity.known/")
OF_ALL = {"--help", "--install-completion", "--show-completion"}
"""Options of the command itself, whatever comes after."""
VALUES: Mapping[str, Collection[str]] = {
    "profile": PROFILES,
    "only": ALL_AXES,
    "model": CHECKPOINTS,
    "plant": FAULTS,
    "name": FAULTS,
    "story": SCENARIOS,
}
"""Options whose values come from a table."""


@cache
def classes() -> frozenset[str]:
    """Every class that the project defines, and its nested names of module level."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            nodes = ast.walk(ast.parse(path.read_text()))
            found |= {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    return frozenset(found)


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


def code(text: str) -> str:
    """What is set as code, a line each: prose such as "parity is" is no command."""
    blocks = FENCED.findall(text)
    return "\n".join((*blocks, *QUOTED.findall(FENCED.sub("", text))))


def command_lines(text: str) -> list[str]:
    """Arguments of every `parity` command line set as code, without a comment after it."""
    return [line.partition(" #")[0].strip() for line in PARITY.findall(code(text))]


def mistake(line: str) -> str | None:
    """What is wrong with the arguments of a `parity` command line; None: it would be accepted."""
    group: Any = typer.main.get_command(app)
    name, *arguments = [part for part in shlex.split(line) if part not in OF_ALL] or [""]
    if not name:
        return None
    if name not in group.commands:
        return f"unknown command {name!r}"
    try:
        # Parses and checks as a real call would, and runs nothing.
        chosen = group.commands[name].make_context(name, arguments).params
    except TyperException as error:
        return str(error.format_message())
    for option, valid in VALUES.items():
        given = chosen.get(option) or ()
        for value in given.split(",") if isinstance(given, str) else given:
            if value not in valid and not PLACEHOLDER.fullmatch(value):
                return f"unknown {option} {value!r}"
    return None


def mistakes(text: str) -> list[str]:
    """What the code in `text` calls and the project does not offer."""
    found = [f"parity {line}: {why}" for line in command_lines(text) if (why := mistake(line))]
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    return [*found, *(f"make {verb}" for verb in MAKE.findall(code(text)) if verb not in verbs)]


def broken_links(document: str) -> list[str]:
    """Targets of a document's links that are neither a file here nor an address."""
    path = ROOT / document
    targets = LINK.findall(path.read_text())
    return [t for t in targets if "://" not in t and not (path.parent / t).exists()]


def test_architecture_has_every_kind_of_name() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert {"path", "module", "class"} <= set(names(text).values()), "a kind of name is not read"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_name_what_exists(document: str) -> None:
    text = (ROOT / document).read_text()
    assert not missing(text)
    assert not mistakes(text)
    assert not broken_links(document)


def test_readme_shows_every_command() -> None:
    shown = {line.split()[0] for line in command_lines((ROOT / "README.md").read_text())}
    group: Any = typer.main.get_command(app)
    assert set(group.commands) <= shown


def test_readme_shows_what_profiles_hold() -> None:
    rows = PROFILE_ROW.findall((ROOT / "README.md").read_text())
    plans = [plan for profile in PROFILES.values() for plan in profile.checkpoints]
    assert [(name, int(cases), int(tokens)) for name, cases, tokens in rows] == [
        (plan.name, plan.cases, plan.max_case_tokens) for plan in plans
    ]


@pytest.mark.parametrize(
    "name", ["engine/no_such_file.py", "NO-SUCH-PAGE.md", "engine.no_such_module", "NoSuchClass"]
)
def test_a_missing_name_is_seen(name: str) -> None:
    assert missing(f"The room `{name}` owns it.") == [name]


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("[a](page.md#top) [b](https://x.example) [c](no-such.md)")
    assert broken_links(str(tmp_path / "page.md")) == ["no-such.md"]


def test_other_quoted_text_is_left_alone() -> None:
    assert not names("`make parity`, `MKL_CBWR`, `--clean`, `.parity/runs/ID/run.json`, `0 ulp`")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("parity explain F-1", "unknown command 'explain'"),
        ("parity run --shrink", "No such option: --shrink"),
        ("parity run --profile weekly", "unknown profile 'weekly'"),
        ("parity run --only compile,warp", "unknown only 'warp'"),
        ("parity run --plant no-such-fault", "unknown plant 'no-such-fault'"),
        ("parity run --workers 0", "greater than or equal to 1"),
        ("parity replay --clean", "Missing argument"),
        ("make no", "make no"),
    ],
)
@pytest.mark.parametrize("set_as", ["See `{}`.", "```sh\n$ .venv/bin/{}   # so\n```"])
def test_a_command_that_does_not_exist_is_seen(line: str, told: str, set_as: str) -> None:
    assert told in " ".join(mistakes(set_as.format(line)))


def test_commands_are_read_and_prose_is_not() -> None:
    text = (
        "No parity here, `make parity` neither, nor pooling-parity or `parity`.\n"
        "`parity run --plant NAME`\n"
        "```\nagain: parity report   # the newest\nmake parity  # all\n```"
    )
    assert command_lines(text) == ["report", "run --plant NAME"]
    assert not mistakes(text)
