"""Tests of the commands that start no run."""
