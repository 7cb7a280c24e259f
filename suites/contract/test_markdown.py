"""Markdown, a job's summary and a tracker's text: they tell what to do and nothing acts.

Passes wrongly if what would act was not recognised, or no payload could leave a span that does not
guard it. Ruled out by `test_unguarded_text_would_act` and suites/meta/test_suites_can_fail.py:
`a-code-span-can-be-left`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reports.load import Run
from reports.markdown import MAX_BYTES, block, markdown, span
from reports.redaction import redacted
from reports.ticket import MAX_SCRIPT_CHARACTERS, ticket
from reports.view.page import build_page
from suites.contract.recorded import ACTING, RUNS, written_and_loaded
from suites.unit.reports.fixtures import HOSTILE, finding
from suites.unit.reports.parts import CHECKPOINTS

MARKDOWN_PAYLOADS = (
    "![x](https://evil.example/p.png)",
    "[click](https://evil.example)",
    "<script>alert(1)</script> <img src=x>",
    "@everyone #123 https://evil.example",
    "` code ` `` more ``` | cell | # heading",
    "a\n\n# heading\n\n- item\n```\nout of the block\n~~~",
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return written_and_loaded(tmp_path_factory.mktemp("runs"))


@pytest.fixture(params=list(RUNS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tokens(text: str) -> Iterator[Token]:
    """Everything that a renderer with every common extension reads in `text`."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for token in reader.parse(text):
        yield token
        yield from token.children or ()


def acting(text: str) -> list[str]:
    """What would act, or load something, or notify someone."""
    found = []
    for token in tokens(text):
        if token.type in ("html_block", "html_inline", "image", "link_open"):
            found.append(token.type)
        elif token.type == "text" and re.search(r"[@#]\w|https?:|www\.|<", token.content):
            found.append(token.content)
    return found


def test_a_summary_is_inert_and_opens_with_the_verdict(loaded: dict[str, Run], name: str) -> None:
    text = markdown(loaded[name])
    assert text.startswith("## ")
    assert not acting(text)
    assert not ACTING & set(text)
    headings = [t.content for t in tokens(text) if t.type == "inline"]
    assert headings[0].endswith(
        {
            "clean": "Same answers in every way it was run",
            "failing": "The answers depend on how it is run",
            "interrupted": "No verdict: the run was interrupted",
            "empty": "No verdict: nothing was proved",
            "hostile": "The answers depend on how it is run",
        }[name]
    )


@pytest.mark.parametrize("payload", [*MARKDOWN_PAYLOADS, *HOSTILE])
def test_spans_and_blocks_hold_whatever_stands_in_them(payload: str) -> None:
    table = f"| a | b |\n|---|---|\n| {span(payload)} | end |\n"
    kinds = [t.type for t in tokens(table)]
    assert kinds.count("td_open") == 2
    assert kinds.count("code_inline") == 1
    assert not acting(table)
    assert not acting(f"before {span(payload)} after")
    fenced = [t.type for t in tokens(block(payload, "sh")) if t.type != "inline"]
    assert fenced == ["fence"]


def test_unguarded_text_would_act() -> None:
    assert all(acting(payload) for payload in MARKDOWN_PAYLOADS[:4])


def test_a_summary_tells_what_to_do(loaded: dict[str, Run]) -> None:
    text = markdown(loaded["failing"])
    assert "| FAIL | ERROR | VACUOUS | PASS | INAPPLICABLE |" in text
    assert "parity replay F-tiny-3c9d" in text
    assert "`Fails when chunk=chunked AND compile=compiled.`" in text
    assert "16 of 16 | 32 of 32" in text
    assert "Planted on purpose: `stale-input-buffer`" in text


def test_a_summary_fits_the_limit(loaded: dict[str, Run]) -> None:
    long = finding(CHECKPOINTS[0], ())
    many = tuple(
        replace(
            long,
            finding_id=f"F-{i}",
            minimal_sets=((f"switch{i}=on",),),  # no two look like one cause
            reproduce="parity replay " + "x" * 200_000,
        )
        for i in range(20)
    )
    text = markdown(replace(loaded["failing"], findings=many))
    assert len(text.encode()) <= MAX_BYTES
    assert "parts that do not fit here" in text
    assert text.rstrip().splitlines()[-1].startswith("See it again:")


def tickets(run: Run) -> list[str]:
    page = build_page(run)
    return [ticket(found, page.setup) for found in page.findings]


def test_a_ticket_can_be_acted_on_by_who_has_only_it(loaded: dict[str, Run]) -> None:
    first = tickets(loaded["failing"])[0]
    for told in (
        "- when: `Fails when chunk=chunked AND compile=compiled.`",
        "- hidden by: `inputs=ring`, `stream_policy=immediate`",
        "- first difference: Step 2, chunk 2 of prompt 0",
        "```sh\nparity replay F-tiny-3c9d --run 20261129-194510-4f1a\n```",
        "```python\nfrom harness import replay",
        "A fence orders two accesses.",
        "a fault planted on purpose: `stale-input-buffer`",
        "| `torch` | ",
    ):
        assert told in first, told
    rows = [line for line in first.splitlines() if line.startswith(("| FAIL |", "| PASS |"))]
    assert len(rows) == 16
    assert sum(row.startswith("| FAIL |") for row in rows) == 4


def test_nothing_in_a_ticket_acts(loaded: dict[str, Run], name: str) -> None:
    run = loaded[name]
    payloads = " ".join(MARKDOWN_PAYLOADS)
    texts = tickets(run)
    texts += tickets(
        replace(
            run, findings=tuple(replace(f, title=payloads, script=payloads) for f in run.findings)
        )
    )
    assert bool(texts) == (name in ("failing", "hostile"))
    for text in texts:
        assert not acting(text)
        assert not ACTING & set(text)


def test_a_redacted_ticket_holds_no_prompt(loaded: dict[str, Run]) -> None:
    for text in tickets(redacted(loaded["failing"])):
        assert "fence orders" not in text
        assert "[redacted]" in text


def test_a_ticket_fits_a_tracker(loaded: dict[str, Run]) -> None:
    run = loaded["failing"]
    long = replace(run.findings[0], script="x = 1\n" * MAX_SCRIPT_CHARACTERS)
    (text,) = tickets(replace(run, findings=(long,)))
    assert len(text) < 60_000
    assert "A stand-alone script is in the report" in text
