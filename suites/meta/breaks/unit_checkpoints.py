"""Breaks of `suites/unit/checkpoints`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="every-recipe-is-the-same",
        suite="suites/unit/checkpoints/test_recipe.py",
        red="test_a_changed_module_is_another_recipe",
        at="harness.checkpoints.recipe:recipe_of",
        instead=instead.returns("a recipe"),
    ),
    Break(
        name="only-the-last-token-is-seen",
        suite="suites/unit/checkpoints/test_context.py",
        red="test_one_early_token_moves_the_pooled_vector",
        at="harness.oracle.oracle:Oracle.embed",
        instead=lambda right: (
            lambda oracle, ids, *args, **options: right(oracle, ids[-1:], *args, **options)
        ),
    ),
    Break(
        name="any-file-is-the-pinned-one",
        suite="suites/unit/checkpoints/test_fetch.py",
        red="test_another_file_under_the_pinned_version_is_refused",
        at="harness.checkpoints.fetch:verify",
        instead=instead.returns(None),
    ),
    Break(
        name="all-files-have-the-same-hash",
        suite="suites/unit/checkpoints/test_cache.py",
        red="test_damage_is_reported_and_rebuilt",
        at="harness.checkpoints.cache:sha256_of",
        instead=instead.returns("0" * 64),
    ),
    Break(
        name="every-tensor-has-the-same-numbers",
        suite="suites/unit/checkpoints/test_generate.py",
        red="test_normal_deviates_are_standard_and_keyed",
        at="harness.checkpoints.tensors:normal",
        instead=lambda right: lambda key, count: right("", count),
    ),
    Break(
        name="a-tokenizer-of-another-model",
        suite="suites/unit/checkpoints/test_token_goldens.py",
        red="test_token_ids_match",
        at="harness.checkpoints.catalogue:path_of",
        instead=lambda right: (
            lambda name, **options: right(
                "tiny-qwen3" if name == "tiny-bert" else "tiny-bert", **options
            )
        ),
    ),
)
