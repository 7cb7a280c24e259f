"""How a checkpoint wants to be pooled: read from its files, overridden by the configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import EngineConfig
from engine.errors import CheckpointError
from engine.jsonfile import read_json_object
from engine.layers.linear import MIN_ROWS
from engine.models.base import Model
from engine.models.config import ModelConfig
from engine.pooling.dispatcher import PoolingHeads
from engine.pooling.heads import ClassifierHead, EmbeddingHead
from engine.pooling.tasks import CLASSIFIER_TASKS, EMBEDDING_TASKS
from engine.request import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo:
    """LM-head rows a reranker is built from (seeds, rule 5)."""

    yes: int
    no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingOptions:
    """What the pooler is built from."""

    method: str
    normalize: bool
    yes_no: YesNo | None

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Tasks the checkpoint declares."""
        tasks = [Task.EMBED, Task.TOKEN_EMBED]
        if self.yes_no is not None:
            tasks += [Task.CLASSIFY, Task.TOKEN_CLASSIFY]
        return tuple(tasks)


_METHOD_FLAGS = {
    "pooling_mode_cls_token": "CLS",
    "pooling_mode_lasttoken": "LAST",
    "pooling_mode_mean_tokens": "MEAN",
}
"""sentence-transformers' flags in 1_Pooling/config.json."""


def read_pooling_options(config: EngineConfig, model: ModelConfig) -> PoolingOptions:
    """Configuration over sentence-transformers files over the family's habit.

    Decoders: LAST, normalised. Encoders: CLS, not normalised. Raises CheckpointError for a
    pooling file that asks for what the engine does not have.
    """
    folder = config.model
    module_types = _module_types(folder)
    method = config.pooling or _file_method(folder)
    if method is None:
        method = "LAST" if model.family == "decoder" else "CLS"
    if module_types is None:
        normalize = model.family == "decoder"
    else:
        normalize = any(name.endswith("Normalize") for name in module_types)
    yes_no = None
    if (folder / "reranker.json").exists():
        data = read_json_object(folder / "reranker.json")
        yes_no = YesNo(yes=int(data["yes"]), no=int(data["no"]))
    return PoolingOptions(method=method, normalize=normalize, yes_no=yes_no)


def runner_tasks(options: PoolingOptions) -> frozenset[Task]:
    """Tasks some configured head answers."""
    return EMBEDDING_TASKS | (CLASSIFIER_TASKS if options.yes_no is not None else frozenset())


def build_heads(options: PoolingOptions, model: Model) -> PoolingHeads:
    """Heads of the last stage; reads the LM-head rows of a reranker."""
    classifier = None
    if options.yes_no is not None:
        yes, no = model.lm_head_rows([options.yes_no.yes, options.yes_no.no])
        device = next(model.parameters()).device
        classifier = ClassifierHead.yes_no(yes.to(device), no.to(device), min_rows=MIN_ROWS)
    return PoolingHeads(
        embedding=EmbeddingHead(model.config.hidden_size, normalize=options.normalize),
        classifier=classifier,
    )


def _module_types(folder: Path) -> list[str] | None:
    path = folder / "modules.json"
    if not path.exists():
        return None

    try:
        modules: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return [str(module["type"]) for module in modules]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not a list of sentence-transformers modules") from error


def _file_method(folder: Path) -> str | None:
    path = folder / "1_Pooling" / "config.json"
    if not path.exists():
        return None
    data = read_json_object(path)
    named = data.get("pooling_mode")
    if isinstance(named, str):
        chosen = [{"cls": "CLS", "lasttoken": "LAST", "mean": "MEAN"}.get(named, named)]
    else:
        chosen = [
            _METHOD_FLAGS.get(flag, flag)
            for flag, on in data.items()
            if flag.startswith("pooling_mode_") and on
        ]
    if len(chosen) != 1 or chosen[0] not in _METHOD_FLAGS.values():
        raise CheckpointError(
            f"{path} asks for pooling {chosen}; expected exactly one of "
            f"{sorted(_METHOD_FLAGS.values())}. Set `pooling` in the configuration to override it."
        )
    return chosen[0]
