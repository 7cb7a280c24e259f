"""The HTML report: one self-contained file that needs neither network nor server."""

from __future__ import annotations

from reports.html.render import render

__all__ = ["render"]
