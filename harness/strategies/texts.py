"""Texts: sentences of many scripts, code, and what tokenizers stumble over.

A fixed pool rather than `st.text()`: the same seed then gives the same case under every Python,
whose Unicode tables differ, and most of it is language that a trained model has an opinion on.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

SENTENCES = (
    "The ferry to the island leaves at half past six, weather permitting.",
    "A pooling model turns a passage of any length into one vector.",
    "Copper conducts heat about twenty times better than stainless steel.",
    "She had read the contract twice and still could not find the clause.",
    "Interest on the loan is calculated daily and charged every month.",
    "Bees navigate by the position of the sun, even behind thin cloud.",
    "Restart the service after changing the port, or the old one stays open.",
    "The committee postponed its decision until the auditors had reported.",
    "Water boils at a lower temperature the higher you climb.",
    "Der Zug nach München hat heute leider zwanzig Minuten Verspätung.",
    "La bibliothèque reste ouverte jusqu'à vingt heures pendant les examens.",
    "¿Dónde puedo comprar un billete para el museo de arte moderno?",
    "Il cielo era così limpido che si vedevano le montagne oltre il lago.",
    "Завтра утром мы поедем на дачу, если не будет дождя.",
    "Το πλοίο φεύγει από το λιμάνι στις επτά το πρωί.",
    "图书馆每天早上八点开门，周末除外。",
    "明日の会議は午後三時から始まります。",
    "내일은 비가 온다고 하니 우산을 챙기세요.",
    "يفتح المتحف أبوابه كل يوم ما عدا يوم الاثنين.",
    "החנות נסגרת מוקדם בימי שישי.",
    "मुझे कल सुबह की ट्रेन का टिकट चाहिए।",
    "Bugün hava çok güzel, yürüyüşe çıkalım mı?",
)
CODE = (
    "def mean(rows):\n    return sum(rows) / len(rows)",
    "SELECT name, count(*) FROM visits WHERE day >= '2024-01-01' GROUP BY name;",
    "for (int i = 0; i < n; ++i) { total += weights[i] * x[i]; }",
    'curl -s -X POST localhost:8000/v1/embeddings -d \'{"input": ["a"]}\'',
    '{"id": 7, "tags": ["a", "b"], "nested": {"ok": true, "ratio": 1e-3}}',
    "^([A-Za-z0-9_.+-]+)@([A-Za-z0-9-]+)\\.[a-z]{2,}$",
)
AWKWARD = (
    "a",
    "?!",
    "   leading and trailing blanks   ",
    "tabs\tand\nnew lines\r\nof both kinds",
    "naïve café — “quoted” … ﬁne",
    "e\u0301 and \u00e9 look alike",  # decomposed and composed
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈",
    "zero\u200bwidth\u200dspace and a soft\u00adhyphen",
    "1234567890 3.14159 -0 1e-12 ½ Ⅷ ٣",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "yes no yes no yes no",
)
QUERIES = (
    "When does the ferry leave?",
    "what conducts heat better than steel",
    "opening hours of the library",
    "¿Dónde está el museo?",
    "明天会下雨吗？",
    "how to restart the service after a port change",
    "interest on a loan",
    "mean of a list in python",
    "?",
)

CountTokens = Callable[[str], int]


def utf8_bytes(text: str) -> int:
    """An upper bound of a text's tokens for every tokenizer that falls back to bytes."""
    return len(text.encode("utf-8"))


@st.composite
def texts(draw: st.DrawFn, *, max_tokens: int, count: CountTokens = utf8_bytes) -> str:
    """A text of at most `max_tokens`: one piece, or several joined."""
    awkward = draw(st.booleans())
    pool = AWKWARD + CODE if awkward else SENTENCES
    pieces = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2 if awkward else 6))
    return _fitting(pieces, max_tokens, count)


@st.composite
def text_pairs(
    draw: st.DrawFn, *, max_tokens: int, count: CountTokens = utf8_bytes
) -> tuple[str, str]:
    """A query and a document that together take at most `max_tokens`."""
    query = _fitting([draw(st.sampled_from(QUERIES))], max(1, max_tokens // 2), count)
    left = max(1, max_tokens - count(query))
    return query, draw(texts(max_tokens=left, count=count))


def _fitting(pieces: list[str], max_tokens: int, count: CountTokens) -> str:
    """As many whole pieces as fit; else the longest start of the first that does, never empty."""
    text = pieces[0]
    for piece in pieces[1:]:
        if count(f"{text} {piece}") > max_tokens:
            break
        text = f"{text} {piece}"
    while count(text) > max_tokens and len(text) > 1:
        text = text[: max(1, len(text) * 3 // 4)]
    return text if text.strip() and count(text) <= max_tokens else "a"
