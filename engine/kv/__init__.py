"""Paged key-value memory: which block belongs to whom. Pure Python."""
