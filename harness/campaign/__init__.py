"""Campaigns: which cases run in which cells, who runs them, and what is made of the results."""
