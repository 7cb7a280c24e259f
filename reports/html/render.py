"""Draws a page into one HTML file. Everything recorded is escaped; nothing but our code runs."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import asdict
from pathlib import Path

import jinja2
from markupsafe import Markup

from reports.fates import FATES
from reports.html.bar_drawing import draw_bars
from reports.html.lattice_drawing import draw_lattice
from reports.html.length_drawing import draw_lengths
from reports.html.map_drawing import draw_map
from reports.html.prompt_drawing import draw_prompt
from reports.html.spark_drawing import draw_spark
from reports.html.strip_drawing import draw_strip
from reports.html.token_drawing import draw_tokens
from reports.load import Run
from reports.ticket import ticket
from reports.view.changes import MEANINGS, Changes
from reports.view.known import place, remedy
from reports.view.looks import LOOKS, state_of
from reports.view.metrics import meaning
from reports.view.page import build_page
from reports.view.standing import STANDINGS
from reports.view.text import number, plural, shortened, visible

TEMPLATES = Path(__file__).parent / "templates"


def _finalize(value: object) -> object:
    """Every value a template prints: text is made visible, then escaped by jinja."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shortened=shortened, number=number)
    environment.globals.update(
        change_meanings=MEANINGS,
        fate_meanings=FATES,
        draw_bars=draw_bars,
        draw_lattice=draw_lattice,
        draw_lengths=draw_lengths,
        draw_map=draw_map,
        draw_prompt=draw_prompt,
        draw_spark=draw_spark,
        draw_strip=draw_strip,
        draw_tokens=draw_tokens,
        look_of=LOOKS.__getitem__,
        look_of_outcome=lambda outcome: LOOKS[state_of(outcome)],
        meaning=meaning,
        number=number,
        place=place,
        plural=plural,
        remedy=remedy,
        standings=STANDINGS,
    )
    return environment


def _own(name: str) -> tuple[Markup, str]:
    """A style sheet or script of this package, and its hash as a content security policy wants it.

    The only text that goes in unescaped; it is ours, and the policy runs nothing else.
    """
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"'sha256-{digest}'"


def render_text(run: Run, changes: Changes | None = None) -> str:
    """The whole file as text; the same run always gives the same text."""
    style, style_hash = _own("report.css")
    early, early_hash = _own("theme.js")
    script, script_hash = _own("report.js")
    policy = (
        f"default-src 'none'; style-src {style_hash}; script-src {early_hash} {script_hash}; "
        "base-uri 'none'; form-action 'none'"
    )
    page = build_page(run, changes)
    readouts: dict[str, str] = {}
    for i, lattice in enumerate(page.lattices):
        readouts |= {f"cell-{i}-{j}": visible(c.summary) for j, c in enumerate(lattice.cells)}
        readouts |= {f"edge-{i}-{j}": visible(e.summary) for j, e in enumerate(lattice.edges)}
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            looks=list(LOOKS.values()),
            marks={str(state): asdict(look) for state, look in LOOKS.items()},
            style=style,
            early=early,
            script=script,
            # Our own hashes: escaping their quotes would be right too, but harder to read.
            policy=Markup(policy),
            readouts=readouts,
            tickets={f.anchor: ticket(f, page.setup) for f in page.findings},
        )
    )


def render(run: Run, path: Path, changes: Changes | None = None) -> Path:
    """Write the report to `path` (its folder is made); a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(render_text(run, changes).encode("utf-8"))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path
