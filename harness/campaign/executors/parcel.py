"""Files between the driver and a node, which need not share a disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from harness.campaign.spec import RunSpec

Sent: TypeAlias = Mapping[str, bytes]
"""File name under `outputs/` -> content."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """The files that a request names, by content."""

    cases: bytes | None
    corpus: Mapping[str, bytes]
    """File name in the corpus' folder -> content."""

    @classmethod
    def of(cls, spec: RunSpec) -> Parcel:
        """OSError where a file cannot be read."""
        corpus = Path(spec.corpus) if spec.corpus else None
        return cls(
            cases=Path(spec.cases_file).read_bytes() if spec.cases_file else None,
            corpus={path.name: path.read_bytes() for path in corpus.iterdir() if path.is_file()}
            if corpus is not None and corpus.is_dir()
            else {},
        )

    def laid_out(self, spec_json: str, folder: Path) -> str:
        """Write the files under `folder`; the request (JSON) with the places that they have now."""
        spec = json.loads(spec_json)
        if self.cases is not None:
            (folder / "cases.jsonl").write_bytes(self.cases)
            spec["cases_file"] = str(folder / "cases.jsonl")
        if self.corpus:
            (folder / "corpus").mkdir()
            for name, content in self.corpus.items():
                (folder / "corpus" / name).write_bytes(content)
            spec["corpus"] = str(folder / "corpus")
        return json.dumps(spec)


def unpack(folder: Path, files: Sent) -> None:
    """Put a node's outputs into the run folder. A name says the content, so one that is there is
    the same; a whole file appears at once."""
    for name, content in files.items():
        path = folder / "outputs" / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(content)
            part.replace(path)
