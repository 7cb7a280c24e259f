"""Triton's kernels against their references: compiled on a GPU, or in the interpreter on a CPU.

Run by `make test-gpu`, and by `suites/unit/kernels/test_interpreter.py` in a process of its own:
whether kernels are interpreted is decided before Triton is imported.
"""
