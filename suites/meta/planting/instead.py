"""What stands in the place of a thing: the wrong ways that many breaks have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def value(wrong: Any) -> Callable[[Any], Any]:
    """A constant that is another."""
    return lambda _: wrong


def returns(wrong: Any) -> Callable[[Any], Any]:
    """A function that does nothing and returns `wrong`, whatever it is given."""
    return lambda _: lambda *args, **kwargs: wrong


def result(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that does its work and returns `change` of what it should."""
    return lambda right: lambda *args, **kwargs: change(right(*args, **kwargs))


def swallows(error: type[Exception]) -> Callable[[Any], Any]:
    """A function that refuses nothing: where it would raise `error`, it returns None."""

    def instead(right: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                return right(*args, **kwargs)
            except error:
                return None

        return function

    return instead
