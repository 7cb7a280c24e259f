"""Which tasks can be asked for, and with which parameters. Needs no weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Final

from engine.errors import RequestError, UnsupportedTaskError
from engine.request import PoolingParams, PoolingRequest, Task

EMBEDDING_TASKS: Final = frozenset({Task.EMBED, Task.TOKEN_EMBED})
"""Tasks that an embedding head answers."""
CLASSIFIER_TASKS: Final = frozenset({Task.CLASSIFY, Task.TOKEN_CLASSIFY})
"""Tasks that a classifier head answers."""

_EMBEDDING_PARAMETERS: Final = frozenset({"normalize", "dimensions"})
_CLASSIFIER_PARAMETERS: Final = frozenset({"activation"})
_PARAMETERS: Final[Mapping[Task, frozenset[str]]] = {
    **dict.fromkeys(EMBEDDING_TASKS, _EMBEDDING_PARAMETERS),
    **dict.fromkeys(CLASSIFIER_TASKS, _CLASSIFIER_PARAMETERS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRules:
    """Supported is what the model declares and the runner knows; encoder or decoder is no matter.

    `model_tasks`: as the checkpoint declares. `runner_tasks`: those a head is configured for.
    `hidden_size` D bounds `dimensions`.
    """

    model_tasks: frozenset[Task]
    runner_tasks: frozenset[Task]
    hidden_size: int

    @property
    def supported_tasks(self) -> tuple[Task, ...]:
        """In the order `Task` lists them."""
        return tuple(t for t in Task if t in self.model_tasks and t in self.runner_tasks)

    def check_task(self, task: Task) -> None:
        """Raise `UnsupportedTaskError` for a task outside `supported_tasks`."""
        if task in self.supported_tasks:
            return
        remedy = (
            f"select one of {_names(self.supported_tasks)}"
            if self.supported_tasks
            else "use a checkpoint that offers a task the runner supports"
        )
        if task in self.model_tasks and task in CLASSIFIER_TASKS:
            remedy += ", or configure a classifier head"
        raise UnsupportedTaskError(
            f"task={task.value!r} is not supported: the model offers {_names(self.model_tasks)}, "
            f"the runner supports {_names(self.runner_tasks)}; {remedy}"
        )

    def check_params(self, request: PoolingRequest) -> None:
        """Raise `RequestError` for a parameter that does not apply to the request's task."""
        self.check_task(request.task)
        params, valid = request.params, _PARAMETERS[request.task]
        given = [f.name for f in fields(PoolingParams) if getattr(params, f.name) is not None]
        foreign = [f"{name}={getattr(params, name)!r}" for name in given if name not in valid]
        if foreign:
            raise RequestError(
                f"request {request.request_id!r}: {', '.join(foreign)} does not apply to "
                f"task={request.task.value!r}: expected only {sorted(valid)}; leave it out"
            )
        if params.dimensions is not None and not 1 <= params.dimensions <= self.hidden_size:
            raise RequestError(
                f"request {request.request_id!r}: dimensions={params.dimensions} is not valid: "
                f"expected 1 to the model's hidden size {self.hidden_size}; "
                "leave it out for all of them"
            )


def _names(tasks: Collection[Task]) -> list[str]:
    return [task.value for task in Task if task in tasks]
