"""The HTML report: whole, self-contained, navigable, reproducible, and inert under hostile text.

Passes wrongly if the hostile texts reached the page by other ways than the templates' own printing.
Ruled out by suites/meta/test_suites_can_fail.py: `the-page-escapes-nothing`.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.record import NoticeRecord
from reports.html import render
from reports.html.render import render_text
from reports.load import Run, load_run
from suites.unit.reports.fixtures import (
    HOSTILE,
    every_kind,
    large_run,
)
from suites.unit.reports.html_reader import Document, read_html

RUNS = every_kind(clean=3, failing=3)
MAX_BYTES = 5 * 1024 * 1024


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: load_run(make().write(folder / name)) for name, make in RUNS.items()}


@pytest.fixture(scope="module")
def texts(loaded: dict[str, Run]) -> dict[str, str]:
    return {name: render_text(run) for name, run in loaded.items()}


@pytest.fixture(scope="module")
def pages(texts: dict[str, str]) -> dict[str, Document]:
    return {name: read_html(text) for name, text in texts.items()}


@pytest.fixture(params=list(RUNS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_tag_closes(pages: dict[str, Document], name: str) -> None:
    assert not pages[name].unbalanced


def test_sections_answer_in_order(pages: dict[str, Document], name: str) -> None:
    ids = [e.attributes["id"] for e in pages[name].all("section")]
    assert ids == [
        "safe",
        "lattice",
        "differs",
        "cases",
        "reproduce",
        *(["known"] if name == "hostile" else []),  # the only one that knew something before
        "changed",
        "trust",
        "noise",
        "setup",
        "words",
    ]


def test_headings_and_landmarks(pages: dict[str, Document], name: str) -> None:
    page = pages[name]
    levels = [int(e.tag[1]) for e in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1 == levels[0]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), "a level is skipped"
    assert [len(page.all(tag)) for tag in ("main", "header", "footer", "nav")] == [1, 1, 1, 1]


def test_ids_are_unique_and_references_resolve(pages: dict[str, Document], name: str) -> None:
    page = pages[name]
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    links = [e.attributes["href"] for e in page.all("a")]
    assert links
    assert all(link[0] == "#" and link[1:] in ids for link in links)
    for attribute in ("aria-labelledby", "data-copy"):
        for element in page.elements:
            assert element.attributes.get(attribute, ids[0]) in ids


def test_nothing_is_fetched(texts: dict[str, str], pages: dict[str, Document], name: str) -> None:
    page = pages[name]
    assert not page.all(
        "img", "link", "iframe", "object", "embed", "form", "base", "video", "audio"
    )
    assert not [e for e in page.elements if {"src", "srcset", "style"} & set(e.attributes)]
    style = page.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style
    assert "@font-face" not in style
    assert [e.attributes.get("http-equiv") for e in page.all("meta")].count("refresh") == 0
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", texts[name])


def test_the_policy_allows_our_own_code_only(pages: dict[str, Document], name: str) -> None:
    page = pages[name]
    policy = next(
        e.attributes["content"]
        for e in page.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    run = [e for e in page.all("script") if e.attributes.get("type") != "application/json"]
    for element in [*run, *page.all("style")]:
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.count("sha256-") == len(run) + 1 == 3


def test_no_element_carries_code(pages: dict[str, Document], name: str) -> None:
    for element in pages[name].elements:
        assert not [a for a in element.attributes if a.startswith("on")]


def test_hostile_text_stays_text(texts: dict[str, str], pages: dict[str, Document]) -> None:
    page = pages["hostile"]
    assert len(page.all("script")) == len(pages["clean"].all("script"))
    svg = {e.parents for e in page.all("svg")}
    assert all("main" in parents for parents in svg)
    shown = page.all("body")[0].text
    for payload in HOSTILE[:5]:
        assert payload in shown, "the reader must see what was recorded"
    assert "\\u{1b}" in shown
    assert "\\u{202e}" in shown
    assert not set("\x00\x07\x1b\u202e") & set(texts["hostile"])
    data = json.loads(page.by_id("readouts").text)
    assert any(HOSTILE[0] in line for line in data.values())


def test_a_lone_surrogate_can_be_written(loaded: dict[str, Run], tmp_path: Path) -> None:
    run = replace(loaded["empty"], notices=("half of a pair: \ud800",))
    assert b"\\u{d800}" in render(run, tmp_path / "report.html").read_bytes()


def test_the_verdict_opens_the_page(pages: dict[str, Document]) -> None:
    heads = {name: page.all("h1")[0].text for name, page in pages.items()}
    assert heads["clean"] == "Same answers in every way it was run"
    assert heads["failing"] == "The answers depend on how it is run"
    assert heads["interrupted"] == "No verdict: the run was interrupted"
    assert heads["empty"] == "No verdict: nothing was proved"
    assert "This run was interrupted: no end record." in pages["interrupted"].by_id("safe").text


def test_a_clean_page_shows_refusals_and_what_cannot_act(pages: dict[str, Document]) -> None:
    lattice = pages["clean"].by_id("lattice").text
    assert lattice.count("8 cells refused at start-up:") == 2
    assert "every token attends to every other" in lattice
    assert "it cannot be split into chunks of 64" in lattice
    assert "16 of 16 cells and 32 of 32 edges judged" in lattice


def test_a_failing_page_answers_the_four_questions(pages: dict[str, Document]) -> None:
    page = pages["failing"]
    differs = page.by_id("differs").text
    assert "Fails when chunk=chunked AND compile=compiled." in differs
    assert "relative_l2 1.13, bound 1e-5" in differs
    assert "layer 1 of 4, at token 128" in differs
    assert "Requires" in differs
    assert "paced(2)" in differs
    assert "chunks begin at 0, 64, 128" in " ".join(
        e.attributes.get("aria-label", "") for e in page.all("svg")
    )
    line = next(e for e in page.elements if e.attributes.get("id", "").endswith("-line"))
    assert line.text == "parity replay F-tiny-3c9d --run 20261129-194510-4f1a"
    assert "Faults were planted in this run on purpose:" in page.by_id("safe").text


def test_findings_further_down_are_drawn_too(loaded: dict[str, Run]) -> None:
    run = loaded["failing"]
    one = run.findings[0]
    many = tuple(replace(one, finding_id=f"F-{i:02}") for i in range(14))
    page = read_html(render_text(replace(run, findings=many)))
    maps = [e for e in page.all("svg") if "heat-map" in e.attributes.get("class", "")]
    texts = [e for e in page.all("p") if e.attributes.get("class") == "tokens-text"]
    # The first twelve: a page of fifty findings must stay small.
    assert len(maps) == len(texts) == 12
    assert page.by_id("finding-F-13")


def test_what_is_not_known_is_said(pages: dict[str, Document]) -> None:
    page = pages["empty"]
    for section, words in {
        "lattice": "No comparison was recorded",
        "differs": "Nothing was compared",
        "noise": "No measurement with a bound was recorded",
        "trust": "No proof of power is recorded",
    }.items():
        assert words in page.by_id(section).text


def test_the_same_run_gives_the_same_bytes(loaded: dict[str, Run], tmp_path: Path) -> None:
    run = loaded["failing"]
    first = render(run, tmp_path / "a.html").read_bytes()
    assert first == render(run, tmp_path / "deep" / "b.html").read_bytes()


def test_a_report_is_replaced_whole_and_leaves_nothing_behind(
    loaded: dict[str, Run], tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    render(loaded["empty"], path)
    assert path.read_text(encoding="utf-8").endswith("</html>")
    broken = replace(loaded["empty"], pairs=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        render(broken, path)
    assert path.read_text(encoding="utf-8").endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_ten_thousand_pairs_stay_small_and_say_what_they_leave_out(tmp_path: Path) -> None:
    recorded = large_run()
    notices = tuple(NoticeRecord(text=f"notice {i}") for i in range(3))
    run = load_run(replace(recorded, records=(*recorded.records, *notices)).write(tmp_path / "run"))
    # Reasons that share no shape are the worst case for a page that groups them.
    words = [
        f"reason {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}"
        for i in range(10_000)
    ]
    pairs = tuple(
        replace(p, warnings=(w,), reason=w if p.reason else "")
        for p, w in zip(run.pairs, [*words, *words], strict=False)
    )
    assert len(pairs) >= 10_000
    path = render(replace(run, pairs=pairs), tmp_path / "report.html")
    assert path.stat().st_size <= MAX_BYTES
    text = path.read_text(encoding="utf-8")
    assert re.search(r"… and [\d,]+ kind of reasons? more|… and [\d,]+ kinds of reason more", text)
