"""Tests of engine.pooling."""
