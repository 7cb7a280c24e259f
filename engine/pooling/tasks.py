"""Which tasks can be asked for, and with which parameters. Needs no weights."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Final

from engine.errors import RequestError, UnsupportedTaskError
from engine.pooling.heads.classifier import SCORE_ACTIVATIONS
from engine.pooling.heads.embedding import EmbeddingSpec
from engine.pooling.heads.splade import SpladeSpec
from engine.pooling.method import ALL
from engine.pooling.routes import Routes
from engine.request import PoolingParams, PoolingRequest, Task

CLASSIFIER_TASKS: Final = frozenset(
    {Task.CLASSIFY, Task.TOKEN_CLASSIFY, Task.EMBED_AND_TOKEN_CLASSIFY}
)
"""Tasks that need a classifier head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRules:
    """Supported is what the model declares and the runner knows; encoder or decoder is no matter.

    `model_tasks`: as the checkpoint declares. `routes`: those that a configured head answers.
    `skips_prompt`: the model leaves an instruction's tokens out of sequence-level pooling.
    """

    model_tasks: frozenset[Task]
    routes: Routes
    skips_prompt: bool = False

    @property
    def supported_tasks(self) -> tuple[Task, ...]:
        """In the order `Task` lists them."""
        return tuple(t for t in Task if t in self.model_tasks and t in self.routes)

    def width(self, task: Task) -> int:
        """Values of one row of a supported task's answer; for a joined one, of its embedding."""
        return self.routes[task][0].head.width

    @property
    def is_sparse(self) -> bool:
        """Whether embeddings are weights of the vocabulary's words, most of them zero."""
        return any(isinstance(p.head, SpladeSpec) for p in self.routes.get(Task.EMBED, ()))

    @property
    def closing_token(self) -> int | None:
        """A listwise reranker's marker of the query; None: the model is not one."""
        parts = self.routes.get(Task.TOKEN_CLASSIFY, ())
        return next((p.method.closing for p in parts if p.method.closing is not None), None)

    @property
    def is_late_interaction(self) -> bool:
        """Whether rows of tokens are made to be compared: projected, and no single vector."""
        return Task.EMBED not in self.routes and any(
            isinstance(part.head, EmbeddingSpec) and part.method == ALL
            for part in self.routes.get(Task.TOKEN_EMBED, ())
        )

    def needs_last_row_only(self, task: Task) -> bool:
        """Whether rows before a prompt's last may come out of a cache, uncomputed."""
        return all(part.method.names == ("LAST",) for part in self.routes[task])

    def parameters(self, task: Task) -> tuple[str, ...]:
        """Fields of `PoolingParams` that apply to a supported task, sorted."""
        parts = self.routes[task]
        names = {name for part in parts for name in part.head.parameters}
        if self.skips_prompt and parts[0].method.names not in (("ALL",), ("SELECTED",)):
            names.add("prompt_tokens")
        return tuple(sorted(names))

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
            f"the runner supports {_names(self.routes)}; {remedy}"
        )

    def check_params(self, request: PoolingRequest) -> None:
        """Raise `RequestError` for a parameter that does not apply to the request's task."""
        self.check_task(request.task)
        params, valid = request.params, self.parameters(request.task)
        given = [f.name for f in fields(PoolingParams) if getattr(params, f.name) is not None]
        foreign = [f"{name}={getattr(params, name)!r}" for name in given if name not in valid]
        if foreign:
            raise RequestError(
                f"request {request.request_id!r}: {', '.join(foreign)} does not apply to "
                f"task={request.task.value!r}: expected only {list(valid)}; leave it out"
            )
        self._check_values(request)
        for part in self.routes[request.task]:
            part.method.check_prompt(request)

    def _check_values(self, request: PoolingRequest) -> None:
        params, width = request.params, self.width(request.task)
        if params.dimensions is not None and not 1 <= params.dimensions <= width:
            raise RequestError(
                f"request {request.request_id!r}: dimensions={params.dimensions} is not valid: "
                f"expected 1 to the embedding's size {width}; leave it out for all of them"
            )
        activation = params.activation
        if isinstance(activation, str):
            # softmax over one class is 1 whatever the logit.
            valid = [a for a in SCORE_ACTIVATIONS if width > 1 or a != "softmax"]
            if activation not in valid:
                raise RequestError(
                    f"request {request.request_id!r}: activation={activation!r} is not valid for "
                    f"{width} classes: expected true, false or one of {valid}"
                )
        if params.prompt_tokens is not None and not 0 <= params.prompt_tokens < request.num_tokens:
            raise RequestError(
                f"request {request.request_id!r}: prompt_tokens={params.prompt_tokens} is not "
                f"valid: expected 0 to {request.num_tokens - 1}, so that a token is left to pool"
            )


def _names(tasks: Collection[Task]) -> list[str]:
    return [task.value for task in Task if task in tasks]
