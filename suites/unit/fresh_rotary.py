"""A process that has imported torch and computed nothing, and forks children that compute first.

`python -m suites.unit.fresh_rotary N` prints N digests, one a line: each child's rotary table, on
two threads. MKL settles on its kernels when a process first calls them, so to MKL every child is a
fresh process; forking spares each of them the import.
"""

from __future__ import annotations

import hashlib
import os
import sys

from engine.determinism import prepare_process, warm_vector_math

prepare_process()

import torch  # noqa: E402 - MKL reads its environment when torch loads

from engine.layers.rotary import inverse_frequencies, rotary_table  # noqa: E402

POSITIONS, HEAD_DIM = 4096, 128
"""As many values as two threads will share: PyTorch splits work from 32,768 elements on."""


def digest() -> str:
    """Of a rotary table computed as a rank computes it: warm up, then two threads."""
    torch.set_num_threads(2)
    warm_vector_math()
    frequencies = inverse_frequencies(HEAD_DIM, 1e6)
    tables = rotary_table(torch.arange(POSITIONS), frequencies, torch.float32)
    content = b"".join(table.numpy().tobytes() for table in tables)
    return hashlib.sha256(content).hexdigest()


def in_child() -> str:
    """`digest`, in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, digest().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        value = answer.read()
    _, status = os.waitpid(child, 0)
    return value if status == 0 else f"child ended with status {status}"


if __name__ == "__main__":
    lines = [in_child() for _ in range(int(sys.argv[1]))]
    sys.stdout.write("\n".join(lines) + "\n")
