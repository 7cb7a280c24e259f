"""The cosine table of a recorded run: each case's cells against the baseline.

    python3 cosines.py RUN_FOLDER

Reads records and outputs only. The eager cells show the engine's own floor.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def main(folder: Path) -> None:
    """Print one row for each case, one column for each cell."""
    runs: dict[str, dict[str, np.ndarray]] = {}
    for line in (folder / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] != "execution" or "perturbed" in record["settings"]:
            continue
        cell = (
            ",".join(f"{k}={v}" for k, v in record["cell"].items()) or record["settings"]["system"]
        )
        if record["outputs"]:
            first = load_file(folder / "outputs" / record["outputs"])["0"].astype(np.float64)
            runs.setdefault(record["case_id"], {})[cell] = first / np.linalg.norm(first)
        elif record["error"]:
            sys.stdout.write(f"{record['case_id']} {cell}: {record['error']}\n")
    for case, cells in runs.items():
        baseline = next((v for k, v in cells.items() if "=" in k), None)
        if baseline is None:
            continue
        for cell, row in cells.items():
            sys.stdout.write(f"{case} {cell}: {float(row @ baseline):.7f}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
