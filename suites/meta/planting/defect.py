"""`Break`: one wrong thing in the code under test, and the test that has to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

ASSERTED: Final = ("AssertionError", "Failed")
"""What a test says when it is not satisfied; `Failed` is pytest's, as for an error not raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The wrong way that a suite file exists to catch.

    Attributes:
        name: unique, as the suite file's docstring names it.
        suite: path of the suite file, from the repository's root.
        red: the test function in it that must fail; for one of a class, `Class::function`.
        at: what is replaced, `module:attribute`, dots for an attribute of a class.
        instead: gets what stands there, returns what stands in its place. For a class method, a
            static method or a property it gets and returns the plain function.
        by: names of the exceptions that count. Anything else is a break that does not fit, such as
            a replacement with the wrong arguments.
        needs: `cuda` where the suite file is skipped without a device.
    """

    name: str
    suite: str
    red: str
    at: str
    instead: Callable[[Any], Any]
    by: tuple[str, ...] = ASSERTED
    needs: str | None = None
