"""Tests over the lattice: every cell against the baseline and along every edge."""
