"""Registers the project's pytest plug-in and nothing else: fixtures live in the plug-in."""

from __future__ import annotations

pytest_plugins = ["harness.pytest_plugin"]
