"""A Ray cluster of two nodes on this machine, one CPU each.

`python -m suites.contract.ray_nodes` prints its address and ends when its standard input does. In a
process of its own, so that a test's process never imports Ray.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suites.contract.sessions import end_session, left_of

ROOT = Path(__file__).resolve().parents[2]
STORE_BYTES = 128 << 20


def main() -> None:
    warnings.simplefilter("ignore")  # of Ray's own making
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only in this process

    small = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **small})
    cluster.add_node(**small)
    cluster.wait_for_nodes()
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    cluster.shutdown()


@contextmanager
def two_nodes(nodes: Path) -> Iterator[str]:
    """The address of such a cluster; nothing is left of it afterwards.

    `nodes`: folder in which `suites.contract.misbehaving.tell_node` leaves the names of those used.
    """
    nodes.mkdir()
    log = nodes.with_suffix(".log")
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "suites.contract.ray_nodes"],
            cwd=ROOT,
            env={**os.environ, "PARITY_NODES": str(nodes)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            address = next((line.strip() for line in lines if line[0].isdigit()), "")
            assert address, f"the cluster did not start: {log.read_text()}"
            yield address
            process.stdin.close()
            process.wait()
            assert not left_of(process.pid)
        finally:
            end_session(process.pid)


if __name__ == "__main__":
    main()
