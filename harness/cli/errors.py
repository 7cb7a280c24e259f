"""A mistake in how a command was used."""

from __future__ import annotations


class UsageError(Exception):
    """Shown as one message with exit code 2, never as a traceback."""
