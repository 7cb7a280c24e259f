"""The cosine table of a recorded run: each case's cells against the baseline.

    python3 cosines.py RUN_FOLDER

Reads records and outputs only. The eager cells show the engine's own floor. Of several prompts, or
of one row a token, the least cosine is printed and how many rows are below 0.99.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

LOW = 0.99


def rows_of(place: Path) -> np.ndarray:
    """Every row of every prompt as float64 unit vectors, [rows, width]; bfloat16 is its bits."""
    stored = load_file(place)
    found = []
    for index in range(len(stored)):
        data = stored[str(index)]
        if data.dtype == np.uint16:
            data = (data.astype(np.uint32) << 16).view(np.float32)
        found.append(np.atleast_2d(data.astype(np.float64)))
    rows = np.concatenate(found)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def main(folder: Path) -> None:
    """Print one row for each case, one column for each cell."""
    runs: dict[str, dict[str, Path]] = {}
    for line in (folder / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] != "execution" or "perturbed" in record["settings"]:
            continue
        cell = (
            ",".join(f"{k}={v}" for k, v in record["cell"].items()) or record["settings"]["system"]
        )
        if record["outputs"]:
            runs.setdefault(record["case_id"], {})[cell] = folder / "outputs" / record["outputs"]
        elif record["error"]:
            sys.stdout.write(f"{record['case_id']} {cell}: {record['error']}\n")
    for case, cells in runs.items():
        first = next((place for cell, place in cells.items() if "=" in cell), None)
        if first is None:
            continue
        base = rows_of(first)
        for cell, place in cells.items():
            cosines = (rows_of(place) * base).sum(axis=-1)
            low = int((cosines < LOW).sum())
            told = f"; {low} of {len(cosines)} rows below {LOW}" if len(cosines) > 1 else ""
            sys.stdout.write(f"{case} {cell}: {float(cosines.min()):.7f}{told}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
