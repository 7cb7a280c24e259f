"""Pooling: a method picks rows of hidden states, a head computes from them, a task names both."""
