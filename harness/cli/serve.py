"""`parity serve`: the engine behind an HTTP interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageError

if TYPE_CHECKING:
    from engine.config import EngineConfig

SERVER_PACKAGES = ("prometheus_client", "starlette", "uvicorn")


def serve(
    *,
    model: Annotated[str, typer.Argument(help="Checkpoint of the catalogue, or a model folder")],
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one")] = 8000,
    served_name: Annotated[
        str | None, typer.Option(help="What clients call the model; default: its name or folder's")
    ] = None,
    max_num_batched_tokens: Annotated[int, typer.Option(help="Token budget of a step")] = 8192,
    max_num_seqs: Annotated[int, typer.Option(help="Prompts in a step")] = 32,
    max_model_len: Annotated[
        int | None, typer.Option(help="Longest prompt in tokens; default: the model's")
    ] = None,
    chunked: Annotated[
        bool | None,
        typer.Option("--chunked/--no-chunked", help="Split prompts over steps; default: if it can"),
    ] = None,
    async_scheduling: Annotated[
        bool, typer.Option("--async", help="Submit a step before the one before is fetched")
    ] = False,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Compile the model's blocks")
    ] = False,
    pooling: Annotated[
        str | None, typer.Option(help="CLS, LAST or MEAN; default: the checkpoint's")
    ] = None,
    attention: Annotated[str, typer.Option(help="Attention backend")] = "sdpa",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16 or float64")] = "float32",
    batch_invariant: Annotated[
        bool, typer.Option("--batch-invariant", help="Same bits whatever the company; slower")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every rank")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    pipeline_parallel_size: Annotated[
        int, typer.Option("--pipeline-parallel-size", "--pp", help="Stages")
    ] = 1,
    executor: Annotated[
        str, typer.Option(help="inline: all ranks in this process; processes: one each")
    ] = "inline",
    num_blocks: Annotated[
        int | None, typer.Option(help="KV blocks; default: enough for every prompt in a step")
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(help="MODULE:CALLABLE that every rank applies to its runner; repeatable"),
    ] = None,
    max_queued_prompts: Annotated[
        int, typer.Option(help="Unanswered prompts, beyond which the answer is 429")
    ] = 4096,
    max_queued_tokens: Annotated[
        int, typer.Option(help="Unanswered tokens, beyond which the answer is 429")
    ] = 262_144,
    max_body_bytes: Annotated[int, typer.Option(help="Longest body of a request")] = 8 * 2**20,
    shutdown_timeout: Annotated[
        int, typer.Option(help="Seconds a shutdown waits for what runs")
    ] = 120,
) -> None:
    """Serve a model: /v1/embeddings, /pooling, /classify, /score, /rerank; see /openapi.json.

    Ends with 0 on SIGINT or SIGTERM, when all it had accepted is answered; with 1 when the engine
    failed a second time (after the first it is started again).
    """
    from engine.config import (
        CacheConfig,
        EngineConfig,
        ExecutionConfig,
        ParallelConfig,
        SchedulerConfig,
    )
    from engine.errors import EngineError

    try:
        engine = EngineConfig(
            model=_folder(model),
            pooling=pooling,
            max_model_len=max_model_len,
            device=device,
            scheduler=SchedulerConfig(
                max_num_batched_tokens=max_num_batched_tokens,
                max_num_seqs=max_num_seqs,
                chunked_prefill=chunked,
                async_scheduling=async_scheduling,
            ),
            cache=CacheConfig(num_blocks=num_blocks),
            execution=ExecutionConfig(
                mode="compiled" if compiled else "eager",
                attention=attention,
                dtype=dtype,
                batch_invariant=batch_invariant,
                num_threads=threads,
            ),
            parallel=ParallelConfig(
                pipeline_parallel_size=pipeline_parallel_size, executor=executor
            ),
            plugins=tuple(plugin or ()),
        )
        code = _serve(
            engine,
            model_name=served_name or Path(model).name or model,
            host=host,
            port=port,
            max_queued_prompts=max_queued_prompts,
            max_queued_tokens=max_queued_tokens,
            max_body_bytes=max_body_bytes,
            shutdown_timeout_s=shutdown_timeout,
        )
    except EngineError as error:
        raise UsageError(str(error)) from error
    raise typer.Exit(code)


def _folder(model: str) -> Path:
    """The folder of a checkpoint of the catalogue, or the folder itself."""
    from harness.checkpoints.catalogue import CHECKPOINTS, path_of

    if model in CHECKPOINTS:
        return path_of(model, say=lambda text: typer.echo(text, err=True))
    folder = Path(model)
    if not (folder / "config.json").is_file():
        raise UsageError(
            f"{model!r} is neither a checkpoint of the catalogue ({', '.join(CHECKPOINTS)}) nor a "
            "folder with a config.json"
        )
    return folder


def _serve(
    engine: EngineConfig,
    *,
    model_name: str,
    host: str,
    port: int,
    max_queued_prompts: int,
    max_queued_tokens: int,
    max_body_bytes: int,
    shutdown_timeout_s: int,
) -> int:
    from engine.server.config import QueueLimits, ServerConfig

    config = ServerConfig(
        model_name=model_name,
        host=host,
        port=port,
        queue=QueueLimits(max_prompts=max_queued_prompts, max_tokens=max_queued_tokens),
        max_body_bytes=max_body_bytes,
        shutdown_timeout_s=shutdown_timeout_s,
    )
    try:
        from engine.server.launch import serve as launch
    except ModuleNotFoundError as error:
        if error.name not in SERVER_PACKAGES:
            raise
        raise UsageError(
            f"the server needs {', '.join(SERVER_PACKAGES)}, and {error.name} is not installed: "
            "pip install 'pooling-parity[server]'"
        ) from error
    return launch(engine, config, say=lambda text: typer.echo(f"parity: {text}"))
