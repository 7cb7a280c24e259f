"""What is known of the fetched checkpoints before they are fetched."""

from __future__ import annotations

from harness.checkpoints.fetch import MINILM, SMOLLM2
from harness.checkpoints.recipe import recipe_of
from harness.checkpoints.reranker import RerankerSpec

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
    "No 6 to 35 times as often as yes (10407) and no (4607); with those two the irrelevant "
    "document outscored the relevant one for both queries tried, with Yes and No the relevant "
    "one won",
)

# A recipe names the published bytes: the pinned wheel, and the code that converts it.
CODE = recipe_of("convert", "fetched", "layout", "reranker")
MINILM_RECIPE = f"minilm {CODE} {MINILM.sha256}"
SMOLLM2_RECIPE = f"smollm2 {CODE} {SMOLLM2.sha256}"
