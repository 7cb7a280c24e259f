"""Trials: how soon the harness finds a planted defect, and how exactly it explains one.

They plant, run ordinary cases, judge and attribute as a campaign does, and only then read what was
planted. Nothing that judges, searches or explains imports this package.
"""
