"""Tests of engine.kv."""
