"""Plants one wrong thing in the code under test, runs a suite file, and says whether it went red.

`python -m suites.meta.planting NAME...` tries breaks by name or by suite file; without a name, all.
"""
