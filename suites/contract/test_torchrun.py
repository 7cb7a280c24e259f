"""Ranks started by torchrun answer as ranks inline do, and rank 0 drives them.

Passes wrongly if the bits were those of ranks that each go on with their own summand. Ruled out by
suites/meta/test_suites_can_fail.py: `ranks-of-one-process-do-not-sum`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file

from engine.config import config_to_json
from engine.executor import wire
from engine.models.config import read_model_config
from harness.checkpoints.catalogue import path_of
from suites.parity.fleet import Fleet, Way
from suites.parity.prompts import MIXED, requests

ROOT = Path(__file__).resolve().parents[2]
WAY = Way(chunk=16, tensor_ranks=2)


def test_two_ranks_over_gloo_give_the_bits_of_two_ranks_inline(tmp_path: Path) -> None:
    fleet = Fleet(path_of("tiny-qwen3"))
    wanted = requests(MIXED, vocabulary=read_model_config(path_of("tiny-qwen3")).vocab_size)
    config, lines = tmp_path / "config.json", tmp_path / "requests.jsonl"
    config.write_text(json.dumps(config_to_json(fleet.config(WAY))))
    lines.write_text("\n".join(json.dumps(wire.request_to_json(request)) for request in wanted))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", "engine.torchrun"]
    done = subprocess.run(
        [*command, str(config), str(lines), str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    inline = fleet.run(replace(WAY, executor="inline"), wanted)
    found = load_file(tmp_path / "out" / "outputs.safetensors")
    assert found.keys() == inline.outputs.keys()
    for name, output in inline.outputs.items():
        assert torch.equal(found[name].view(torch.int32), output.values.view(torch.int32)), name
    witness = json.loads((tmp_path / "out" / "witness.json").read_text())
    assert len({rank["pid"] for rank in witness["ranks"]}) == 2
    assert all(rank["summands"] == 2 * rank["reductions"] > 0 for rank in witness["ranks"])
    assert not any(rank["hazards"] for rank in witness["ranks"])
