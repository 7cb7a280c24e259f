"""What every process runs that torchrun starts.

    torchrun --nproc-per-node 2 -m engine.torchrun CONFIG.json REQUESTS.jsonl OUTPUT

`CONFIG.json` is what `config_to_json` writes; its stages times tensor ranks are the processes that
torchrun starts. Each line of `REQUESTS.jsonl` is what `engine.executor.wire` sends for a request;
of its keys only `request_id`, `token_ids` and `task` are needed. `OUTPUT` gets the answers by
request id (`outputs.safetensors`) and `witness.json`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from safetensors.torch import save_file

from engine.config import config_from_json
from engine.engine import Engine
from engine.errors import ConfigurationError
from engine.executor import wire
from engine.executor.torchrun import serve_rank


def main(arguments: Sequence[str]) -> None:
    """What every process that torchrun starts runs."""
    if int(os.environ.get("RANK", "0")) != 0:
        serve_rank()
        return
    if len(arguments) != 3:
        raise ConfigurationError(
            f"expected CONFIG.json REQUESTS.jsonl OUTPUT, got {list(arguments)}"
        )
    config_file, requests_file, output = map(Path, arguments)
    config = config_from_json(json.loads(config_file.read_text()))
    requests = [
        wire.request_from_json({"type_ids": [], "params": {}, **json.loads(line)})
        for line in requests_file.read_text().splitlines()
        if line.strip()
    ]
    parallel = replace(config.parallel, executor="torchrun")
    with Engine(replace(config, parallel=parallel)) as engine:
        result = engine.run(requests)
    output.mkdir(parents=True, exist_ok=True)
    answers = {name: found.values.contiguous() for name, found in result.outputs.items()}
    save_file(answers, output / "outputs.safetensors")
    aside = {"refused": dict(result.refused), "failed": dict(result.failed)}
    witness = {**result.witness.to_json(), **aside}
    (output / "witness.json").write_text(json.dumps(witness))


if __name__ == "__main__":
    main(sys.argv[1:])
