"""Texts of several lengths and kinds, and pairs for a reranker."""

from __future__ import annotations

_STORY = (
    "The ferry left the harbour an hour late because the customs officer could not find his "
    "stamp. By the time the island came into view the cook had already served soup twice, and "
    "nobody on deck believed the captain's promise that the wind would turn before evening. "
)

TEXTS = (
    "yes",
    "What is the capital of France?",
    "naïve café déjà-vu — 東京 and Ελλάδα, 3.14159 × 10⁻⁷",
    "def f(x):\n    return [i ** 2 for i in range(x) if i % 2]\n",
    _STORY,
    3 * _STORY,
)
"""From one word to about 150 tokens."""

QUERY = "What is the capital of France?"
PAIRS = (
    (QUERY, "Paris is the capital and largest city of France."),
    (QUERY, "Honey never spoils if it is kept dry and closed."),
    (
        "how do plants make sugar",
        "Photosynthesis turns light, water and carbon dioxide into sugar.",
    ),
)
