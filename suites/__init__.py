"""Test suites of pooling-parity, one package per kind of claim."""
