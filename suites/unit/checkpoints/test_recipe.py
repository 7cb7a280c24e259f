"""A recipe changes with the code that makes the checkpoint, and names all of that code.

Passes wrongly if a recipe did not depend on the code at all. Ruled out by
suites/meta/test_suites_can_fail.py: `every-recipe-is-the-same`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.checkpoints import generate, recipe
from harness.checkpoints.recipe import recipe_of

PACKAGE = Path(generate.__file__).parent
NOT_BYTES = {"__init__", "cache", "errors", "recipe"}
"""What `generate` loads that writes no byte of a checkpoint by itself."""


def test_every_module_that_makes_bytes_is_named() -> None:
    """By what a fresh process has loaded after it imported the generators."""
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, harness.checkpoints.generate\n"
            "print(*(m for m in sys.modules if m.startswith('harness.checkpoints.')))",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    makers = {name.rpartition(".")[2] for name in loaded} - NOT_BYTES
    assert recipe_of(*makers) == generate.RECIPE


@pytest.mark.parametrize("changed", ["tensors", "layout"])
def test_a_changed_module_is_another_recipe(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in PACKAGE.glob("*.py"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(recipe, "__file__", str(tmp_path / "recipe.py"))
    before = recipe_of("tensors", "layout")
    with (tmp_path / f"{changed}.py").open("a") as source:
        source.write("\n# changed\n")
    assert recipe_of("tensors", "layout") != before
    assert recipe_of("layout", "tensors") == recipe_of("tensors", "layout")
