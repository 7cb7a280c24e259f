"""Reads a report as a tree of tags with the standard library, for tests of its structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SELF_CLOSING = {"circle", "path", "rect"}


@dataclass(slots=True, kw_only=True)
class Element:
    """One start tag, and the text directly and indirectly inside it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    text: str = ""


@dataclass(slots=True, kw_only=True)
class Document:
    elements: list[Element] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def all(self, *tags: str) -> list[Element]:
        return [e for e in self.elements if e.tag in tags]

    def by_id(self, name: str) -> Element:
        return next(e for e in self.elements if e.attributes.get("id") == name)


class _Reader(HTMLParser):
    """Owns: the stack of open elements while one document is read."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.document = Document()
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(
            tag=tag,
            attributes={k: v or "" for k, v in attrs},
            parents=tuple(e.tag for e in self.open),
        )
        self.document.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1].tag != tag:
            where = "/".join(e.tag for e in self.open)
            self.document.unbalanced.append(f"</{tag}> inside {where}")
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read_html(text: str) -> Document:
    """Parse `text`; end tags that do not match are listed, open ones too."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.document.unbalanced += [f"<{e.tag}> never closed" for e in reader.open]
    return reader.document
