"""Exit codes as `git bisect run` wants them: 0 good, 1 bad, 125 cannot be told."""

from __future__ import annotations

BISECT = "--bisect"
UNTESTABLE = 125


def bisect_code(code: int) -> int:
    """A run that did not start, failed, or proved nothing says nothing about the commit."""
    return code if code in (0, 1) else UNTESTABLE
