"""Tests on real checkpoints, fetched outside the repository."""
