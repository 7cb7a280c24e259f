"""A scenario on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reports.view.story import Story
from reports.view.text import plural, visible

if TYPE_CHECKING:
    from rich.console import Console


def print_story(story: Story, console: Console, *, command: str) -> None:
    """Print the story, a paragraph for each question; `command` repeats its run."""
    from rich.padding import Padding  # noqa: PLC0415 - who prints nothing does not pay for it
    from rich.text import Text  # noqa: PLC0415

    console.rule(Text(visible(story.info.title), style="bold"))
    for head, lines in _chapters(story, command):
        console.print(Text(head, style="bold"))
        for line in lines:
            if line.startswith("parity "):  # not wrapped, so that it can be copied in one piece
                console.print(Text(f"  {visible(line)}"), soft_wrap=True)
            elif line:
                console.print(Padding(Text(visible(line)), (0, 0, 0, 2)))
    console.rule()


def _chapters(story: Story, command: str) -> Iterator[tuple[str, list[str]]]:
    info, finding = story.info, story.finding
    sources = [f"Reported as {', '.join(info.sources)}."] if info.sources else []
    yield "The user", [info.user, *sources]
    yield "What the test suites saw", [info.suites]
    yield (
        "What each corner does",
        [*(f"{corner.name}: {corner.result}" for corner in story.corners), story.overlooked],
    )
    if finding is None:
        yield "What differs", ["Nothing: the story was not seen in this run."]
        return
    share = f" ({finding.share})" if finding.share else ""
    yield "What differs", [f"{finding.title}: worst {finding.worst}{share}"]
    yield "Where first", [finding.divergence or "Not localised: the baseline itself is off."]
    yield "Which switches", [finding.fails_when]
    hidden = tuple(map(str, finding.hidden.by)) or ("nothing that was varied",)
    yield "Hidden by", [", ".join(hidden)]
    for name, _, values in finding.conditions.named:
        yield name, ["; ".join(values)]
    yield "Why", [info.cause, f"Planted here as {', '.join(story.plants)}."]
    yield "What would have shown it", [info.lesson]
    more = f"{plural(story.others, 'further finding')} in the report." if story.others else ""
    yield "See it again", [finding.reproduce, command, *filter(None, [more])]
