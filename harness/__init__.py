"""Harness: cases, axes, systems under test, oracle, judge, campaigns and the `parity` command."""
