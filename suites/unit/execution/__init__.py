"""Tests of streams, events, policies and the happens-before check."""
