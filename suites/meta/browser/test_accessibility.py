"""axe-core finds nothing to complain about, in either theme, on a desk and on a phone.

Passes wrongly if axe was not run, or saw nothing. Ruled out by `test_axe_sees_what_is_wrong`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from suites.meta.browser.visits import DESKTOP, PHONE, Visit

pytestmark = pytest.mark.xdist_group("browser")


def violations(page: object) -> list[str]:
    """`rule: first element` of everything that axe found."""
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [pytest.param("clean", marks=pytest.mark.nightly), "failing"])
def test_axe_finds_nothing(
    visit: Callable[..., Visit], reports: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    seen = visit(reports[name], width=width, scheme=scheme)
    # What is folded is not looked at otherwise.
    seen.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert not violations(seen.page)
    assert seen.requests == [reports[name].as_uri()]


def test_axe_sees_what_is_wrong(visit: Callable[..., Visit], reports: dict[str, Path]) -> None:
    page = visit(reports["empty"]).page
    page.evaluate(
        "const i = document.createElement('input'); i.type = 'text';"
        "document.getElementById('main').append(i);"
    )
    assert any(found.startswith("label:") for found in violations(page))
