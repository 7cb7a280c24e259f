"""Unit tests of running, judging and re-judging."""
