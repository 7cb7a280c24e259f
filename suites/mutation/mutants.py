"""The mutants of the judge: where each is, and the text of its module with the change in it.

cosmic-ray lists and makes them. It is no dependency of the project: it is imported from where the
session finds it.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

JUDGE = "harness/judge"
COMPARATORS = tuple(
    f"{JUDGE}/{name}.py" for name in ("metrics", "distances", "closeness", "checks", "lists")
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mutant:
    """One change of one module."""

    module: str
    """Its path from the root of the repository."""
    source: str
    """Digest of the module as it was: of another text, the same numbers are another mutant."""
    line: int
    operator: str
    occurrence: int
    """The how-manieth place in the module that the operator could change."""

    def __str__(self) -> str:
        operator = self.operator.removeprefix("core/")
        return f"{self.module}:{self.line} {operator} #{self.occurrence}"


def judge_modules(tree: Path) -> list[str]:
    """Every module of the judge, as paths from the root."""
    return sorted(str(path.relative_to(tree)) for path in (tree / JUDGE).glob("*.py"))


def mutants_of(tree: Path, module: str) -> Iterator[Mutant]:
    """What cosmic-ray can change in the module, but for annotations, which are never evaluated."""
    text = (tree / module).read_text(encoding="utf-8")
    init: Any = import_module("cosmic_ray.commands.init")
    unread = annotations(text)
    for item in init._all_work_items([tree / module], {}):
        (spec,) = item.mutations
        if not any(begin <= spec.start_pos and spec.end_pos <= end for begin, end in unread):
            yield Mutant(
                module=module,
                source=digest(text),
                line=spec.start_pos[0],
                operator=spec.operator_name,
                occurrence=spec.occurrence,
            )


def mutated(text: str, mutant: Mutant) -> str | None:
    """The module's text with the change in it; None: there is no such change.

    Raises:
        ValueError: The mutant is one of another text.
    """
    if digest(text) != mutant.source:
        raise ValueError(
            f"{mutant}: expected a module of digest {mutant.source}, got {digest(text)}; "
            f"list its mutants again"
        )
    mutating: Any = import_module("cosmic_ray.mutating")
    operator = (import_module("cosmic_ray.plugins")).get_operator(mutant.operator)()
    changed: str | None = mutating.mutate_code(text, operator, mutant.occurrence)
    return changed


def annotations(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Begin and end (line from 1, column from 0) of everything that annotates."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        written = node.annotation if isinstance(node, ast.AnnAssign | ast.arg) else None
        written = node.returns if isinstance(node, ast.FunctionDef) else written
        if written is not None:
            found.append(written)
    return [
        ((e.lineno, e.col_offset), (e.end_lineno or e.lineno, e.end_col_offset or 0)) for e in found
    ]


def in_any_order(mutants: list[Mutant], seed: int = 0) -> list[Mutant]:
    """Shuffled, so that a session that was stopped has tried a fair sample."""
    shuffled = sorted(mutants)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def digest(text: str) -> str:
    """What tells one text of a module from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
