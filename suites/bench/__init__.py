"""Costs, measured and printed by `make bench`; no clock is ever asserted."""
