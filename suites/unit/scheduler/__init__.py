"""Tests of engine.scheduler."""
