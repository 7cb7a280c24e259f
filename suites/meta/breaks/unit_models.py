"""Breaks of `suites/unit/models`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="norms-without-their-epsilon",
        suite="suites/unit/models/test_accuracy.py",
        red="test_float64_specification_is_the_reference_model",
        at="engine.layers.norm:rms_norm",
        instead=lambda right: lambda x, weight, eps: right(x, weight, 0.0),
    ),
    Break(
        name="frequencies-a-little-high",
        suite="suites/unit/models/test_accuracy_table.py",
        red="test_our_error_is_at_most_twice_hugging_faces",
        at="engine.layers.rotary:inverse_frequencies",
        instead=instead.result(lambda frequencies: frequencies * 1.001),
    ),
    Break(
        name="every-rank-reads-the-first-part",
        suite="suites/unit/models/test_split.py",
        red="test_the_parts_of_all_ranks_are_the_whole",
        at="engine.weights:Checkpoint.__init__",
        instead=lambda right: (
            lambda checkpoint, folder, **options: right(
                checkpoint, folder, **{**options, "tensor_rank": 0}
            )
        ),
    ),
    Break(
        name="options-are-ignored",
        suite="suites/unit/models/test_config.py",
        red="test_what_the_engine_would_get_wrong_is_refused",
        at="engine.models.fields:Fields.refuse_unless",
        instead=instead.returns(None),
    ),
    Break(
        name="a-stage-holds-all-layers",
        suite="suites/unit/models/test_stages.py",
        red="test_stages_hold_the_models_tensors_and_no_others",
        at="engine.models.loader:load_model",
        instead=lambda right: lambda path, *, layers=None, **options: right(path, **options),
    ),
)
