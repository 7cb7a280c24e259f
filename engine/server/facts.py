"""What the served model is: read once from the started engine and the model's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.engine import Engine
from engine.errors import CheckpointError
from engine.jsonfile import read_json_object
from engine.request import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What every endpoint needs to know to check a body. `name`: what clients call the model."""

    name: str
    tasks: tuple[Task, ...]
    max_model_len: int
    vocab_size: int
    parameters: Mapping[Task, tuple[str, ...]]
    """Per-request choices that apply to each of the tasks."""
    widths: Mapping[Task, int]
    """Values of one row of a task's answer."""
    is_sparse: bool
    """Embeddings are mostly zeros: one value a word of the vocabulary."""
    dtype: str
    labels: tuple[str, ...]
    """Names of a classifier's classes by index, as config.json has them; empty if it has none."""

    @classmethod
    def of(cls, engine: Engine, name: str) -> ModelFacts:
        """Facts of a started engine. Raises CheckpointError for a bad id2label."""
        config, model = engine.config, engine.model_config
        assert config.max_model_len is not None, "a started engine's configuration is resolved"
        labels = _labels(read_json_object(config.model / "config.json").get("id2label") or {})
        if labels is None:
            raise CheckpointError(
                f"id2label in {config.model / 'config.json'}: expected an object that names the "
                "classes 0, 1, 2 and so on, got something else"
            )
        return cls(
            name=name,
            tasks=engine.supported_tasks,
            max_model_len=config.max_model_len,
            vocab_size=model.vocab_size,
            parameters={task: engine.rules.parameters(task) for task in engine.supported_tasks},
            widths={task: engine.rules.width(task) for task in engine.supported_tasks},
            is_sparse=engine.rules.is_sparse,
            dtype=config.execution.dtype,
            labels=labels,
        )


def _labels(table: object) -> tuple[str, ...] | None:
    """Class names in order; None when the table is not one."""
    if not isinstance(table, dict):
        return None
    names = [table.get(str(index)) for index in range(len(table))]
    return tuple(map(str, names)) if None not in names else None
