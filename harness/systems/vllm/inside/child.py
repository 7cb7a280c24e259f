"""Runs one vLLM engine and answers over a pipe: one JSON object a line, in and out.

    {"verb": "start", "arguments": {...}, "task": "embed"}          -> {"started": {...}}
    {"verb": "run", "prompts": [[1, 2]], "task": ..., "parameters": {...}} -> {"outputs": [...]}

or, to either, {"refused": why} or {"failed": what}.

It imports vllm, torch and the standard library only, so it runs in vLLM's own environment.
Whatever else is printed goes to standard error: standard output carries the answers.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any

ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # vLLM logs to standard output, and so do the processes it starts

LOOK_S = 1.0


def say(message: dict[str, Any]) -> None:
    """One line to the harness."""
    ANSWERS.write(json.dumps(message) + "\n")
    ANSWERS.flush()


def start(message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(engine, facts) from the arguments of vLLM's `LLM`."""
    import vllm  # noqa: PLC0415 - takes seconds, and its absence is an answer
    from vllm.config import PoolerConfig  # noqa: PLC0415

    arguments = dict(message["arguments"])
    # An older version has no such field: its engine takes every task at once.
    with contextlib.suppress(TypeError, ValueError):
        arguments["pooler_config"] = PoolerConfig(task=message["task"])
    engine = vllm.LLM(**arguments)
    engine.collective_rpc("parity_watch")
    config = engine.llm_engine.vllm_config
    facts = {
        "vllm": vllm.__version__,
        "tasks": [str(task) for task in getattr(engine, "supported_tasks", ())],
        "async_scheduling": str(config.scheduler_config.async_scheduling),
        "chunked_prefill": str(config.scheduler_config.enable_chunked_prefill),
        "prefix_caching": str(config.cache_config.enable_prefix_caching),
        "runner": "V2" if getattr(config, "use_v2_model_runner", False) else "V1",
    }
    return engine, facts


def run(engine: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Outputs as raw bytes in their own dtype, and every rank's counts."""
    import torch  # noqa: PLC0415 - vllm has it loaded
    from vllm import PoolingParams  # noqa: PLC0415

    before = engine.collective_rpc("parity_count")
    params = PoolingParams(**message["parameters"])
    prompts = [{"prompt_token_ids": ids} for ids in message["prompts"]]
    answers = engine.encode(prompts, params, pooling_task=message["task"], use_tqdm=False)
    outputs = []
    for answer in answers:
        data = answer.outputs.data.detach().cpu().contiguous()
        bits = data.view(torch.int16) if data.dtype == torch.bfloat16 else data
        outputs.append(
            {
                "shape": list(data.shape),
                "dtype": str(data.dtype).removeprefix("torch."),
                "data": base64.b64encode(bits.numpy().tobytes()).decode(),
                "request": answer.request_id,
                "tokens": len(answer.prompt_token_ids),
                "cached": getattr(answer, "num_cached_tokens", None),
            }
        )
    after = engine.collective_rpc("parity_count")
    return {"outputs": outputs, "before": before, "after": after}


def end_with(parent: int) -> None:
    """End every process of this group once the harness is gone: a start may last minutes."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.killpg(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Answer until the pipe closes."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    engine: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if message["verb"] == "start":
                engine, facts = start(message)
                say({"started": facts})
            else:
                say(run(engine, message))
        except (ValueError, NotImplementedError) as error:
            # At start-up vLLM checks its configuration and says no in these words.
            traceback.print_exc()
            say({"refused": f"{type(error).__name__}: {error}"})
        except BaseException as error:  # noqa: BLE001 - told to the harness, which decides
            traceback.print_exc()
            say({"failed": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
