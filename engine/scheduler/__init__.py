"""How requests become steps. Pure Python: a step plan is a value, and nothing here computes."""
