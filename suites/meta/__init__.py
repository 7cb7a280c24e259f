"""Tests of the project itself: architecture, packaging, and that the harness can fail."""
