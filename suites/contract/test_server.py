"""`parity serve` as its users meet it: a process, real connections, signals, a killed worker.

Passes wrongly if a served row might differ from the engine's in its last bit. Ruled out by
suites/meta/test_suites_can_fail.py: `a-served-row-loses-its-last-bit`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest

from engine.config import EngineConfig, ExecutionConfig
from engine.engine import Engine
from engine.request import PoolingRequest, Task
from harness.checkpoints.catalogue import path_of
from suites.contract.command import parity
from suites.contract.sessions import end_session, left_of, living, wait_for

ROOT = Path(__file__).resolve().parents[2]
MAX_LEN, CONNECTIONS, EACH = 96, 16, 5
LIVENESS_S = 120
ADDRESS = re.compile(r"serving (\S+) on (http://\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running `parity serve`."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def ask(self, prompt: list[int], **more: object) -> httpx.Response:
        return httpx.post(
            f"{self.url}/v1/embeddings", json={"input": prompt, **more}, timeout=LIVENESS_S
        )

    def end(self) -> int:
        """Exit code, when it has ended."""
        return self.process.wait(LIVENESS_S)


@contextmanager
def served(folder: Path, *arguments: str, model: str = "tiny-qwen3") -> Iterator[Served]:
    """`parity serve` with these options, in a session of its own, until it has ended."""
    log = folder / "log"
    command = [sys.executable, "-m", "harness", "serve", model, "--port", "0"]
    command += ["--max-model-len", str(MAX_LEN), "--max-num-seqs", "8", *arguments]
    with log.open("w") as stream:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        wait_for(lambda: ADDRESS.search(log.read_text()) is not None, process, log)
        found = ADDRESS.search(log.read_text())
        assert found is not None
        assert found.group(1) == Path(model).name
        assert found.group(2).startswith("http://127.0.0.1:"), "bound to this machine only"
        yield Served(process=process, url=found.group(2), log=log)
        if process.poll() is None:
            process.terminate()
            assert process.wait(LIVENESS_S) == 0, log.read_text()
        assert not left_of(process.pid)
        assert "Traceback" not in log.read_text() or "WorkerError" in log.read_text()
    finally:
        end_session(process.pid)
        process.wait()


def prompt(number: int) -> list[int]:
    """A prompt like no other, of a length like few others."""
    return [5 + (number * 31 + i * 7) % 900 for i in range(1 + (number * 13) % MAX_LEN)]


def rows(prompts: list[list[int]]) -> list[np.ndarray]:
    """What the engine says offline, one prompt at a time."""
    config = EngineConfig(
        model=path_of("tiny-qwen3"),
        max_model_len=MAX_LEN,
        execution=ExecutionConfig(batch_invariant=True),
    )
    found = []
    with Engine(config) as engine:
        for ids in prompts:
            request = PoolingRequest(request_id="one", token_ids=tuple(ids), task=Task.EMBED)
            found.append(engine.run([request]).outputs["one"].values.numpy())
    return found


def test_many_connections_each_get_their_own_bits_and_a_shutdown_loses_none(
    tmp_path: Path,
) -> None:
    prompts = [prompt(number) for number in range(CONNECTIONS * EACH)]
    expected = rows(prompts)
    assert len({row.tobytes() for row in expected}) == len(prompts)
    options = ("--batch-invariant", "--chunked", "--async", "--max-num-batched-tokens", "64")
    with served(tmp_path, *options) as server:

        def client(first: int) -> list[bytes]:
            got = []
            with httpx.Client(base_url=server.url, timeout=LIVENESS_S) as connection:
                for number in range(first, len(prompts), CONNECTIONS):
                    answer = connection.post("/v1/embeddings", json={"input": prompts[number]})
                    (item,) = answer.raise_for_status().json()["data"]
                    got.append(np.array(item["embedding"], dtype=np.float32).tobytes())
            return got

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            answers = list(pool.map(client, range(CONNECTIONS)))
        for first, got in enumerate(answers):
            assert got == [row.tobytes() for row in expected[first::CONNECTIONS]]
        metrics = httpx.get(f"{server.url}/metrics").text
        steps = float(re.findall(r"^parity_step_tokens_count (\S+)", metrics, re.MULTILINE)[0])
        assert steps < sum(-(-len(ids) // 64) for ids in prompts), "no step held two connections"
        assert "parity_hazards_total 0.0" in metrics

        with ThreadPoolExecutor(1) as pool:
            batch = [prompt(5)] * 64
            last = pool.submit(
                httpx.post, f"{server.url}/v1/embeddings", json={"input": batch}, timeout=LIVENESS_S
            )
            wait_for(lambda: open_prompts(server) > 0, server.process, server.log)
            server.process.terminate()
            assert server.end() == 0
            assert len(last.result().raise_for_status().json()["data"]) == len(batch)
            with pytest.raises(httpx.ConnectError):
                server.ask(prompt(1))


def open_prompts(server: Served) -> float:
    metrics = httpx.get(f"{server.url}/metrics", timeout=LIVENESS_S).text
    return float(re.findall(r"^parity_open_prompts (\S+)", metrics, re.MULTILINE)[0])


def test_a_killed_worker_fails_its_requests_and_a_second_one_ends_the_server(
    tmp_path: Path,
) -> None:
    with served(tmp_path, "--pp", "2", "--executor", "processes") as server:
        before = server.ask(prompt(1)).raise_for_status().json()["data"]
        kill_a_rank(server)
        lost = server.ask(prompt(1))
        assert (lost.status_code, lost.json()["error"]["code"]) == (503, "unavailable")
        assert int(lost.headers["Retry-After"]) >= 1
        again = server.ask(prompt(1))
        assert again.json()["data"] == before
        assert "parity_engine_rebuilds_total 1.0" in httpx.get(f"{server.url}/metrics").text
        kill_a_rank(server)
        assert server.ask(prompt(1)).status_code == 503
        assert server.end() == 1, server.log.read_text()


def kill_a_rank(server: Served) -> None:
    """What the kernel does to a process that takes too much memory."""
    ranks = [pid for pid in children(server.process.pid) if "spawn_main" in command_of(pid)]
    assert len(ranks) == 2, living(server.process.pid)
    os.kill(ranks[-1], signal.SIGKILL)


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere",), "'nowhere' is neither a checkpoint of the catalogue (tiny-qwen3,"),
        (("tiny-bert", "--chunked"), "is an encoder"),
        (("tiny-qwen3", "--port", "70000"), "port=70000 is not valid"),
        (("tiny-qwen3", "--max-queued-tokens", "0"), "max_tokens=0 is not valid"),
        (("tiny-qwen3", "--dtype", "int8"), "dtype='int8' is not valid"),
        (("tiny-qwen3", "--max-model-len", "99999"), "positions of"),
    ],
)
def test_what_cannot_be_served_is_one_message(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    answer = parity(
        capsys, "serve", *arguments, *(() if "--port" in arguments else ("--port", "0"))
    )
    assert (answer.code, told in answer.told) == (2, True), answer.told


def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "engine.server.launch", raising=False)
    answer = parity(capsys, "serve", "tiny-qwen3", "--port", "0")
    assert answer.code == 2
    assert "pip install 'pooling-parity[server]'" in answer.told
