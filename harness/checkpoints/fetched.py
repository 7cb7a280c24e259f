"""What is known of the fetched checkpoints before they are fetched."""

from __future__ import annotations

from harness.checkpoints.reranker import RerankerSpec

MINILM_RECIPE, SMOLLM2_RECIPE = "minilm-1", "smollm2-1"
"""Change one whenever the files that `harness.checkpoints.convert` writes would change."""

MINILM_MAX_LENGTH = 256
"""Its sentence-transformers limit; the position table has 512 rows."""

SMOLLM2_POSITIONS = 8192
SMOLLM2_RERANKER = RerankerSpec(
    yes=10539,
    no=5230,
    yes_text="Yes",
    no_text="No",
    # Measured on the converted model with the prompt of `reranker.jinja`, two queries, a relevant
    # and an irrelevant document each: Yes and No had 2 to 5 % of the probability, yes and no 0.06
    # to 0.7 %, the spellings with a leading space below 0.003 %.
    why="the answer starts a line, so it has no leading space, and there this model writes Yes and "
    "No 7 to 40 times as often as yes (10407) and no (4607); with those two an irrelevant document "
    "outscored the relevant one, with Yes and No both queries were ordered rightly",
)
