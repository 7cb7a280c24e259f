"""The pooler: tasks mixed in a batch, order, refusals, aborts.

Passes wrongly if the order of a batch and that of its answers were alike by chance. Ruled out by
suites/meta/test_suites_can_fail.py: `answers-come-out-backwards`.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest
import torch

from engine.errors import ConfigurationError, LedgerError, RequestError, UnsupportedTaskError
from engine.pooling.base import PoolingBatch, PoolingEntry
from engine.pooling.dispatcher import Pooler
from engine.pooling.heads import ClassifierHead, ClassifierSpec, EmbeddingSpec
from engine.pooling.heads.layers import DenseSpec
from engine.pooling.method import ALL, MethodSpec
from engine.pooling.routes import Part
from engine.pooling.tasks import TaskRules
from engine.request import PoolingParams, PoolingRequest, Task
from suites.unit.pooling.packing import Prompts, pool_all, pooler_of

DIM = 4
CLASSIFIER = ClassifierHead(torch.eye(3, DIM), min_rows=2)
LOGITS = PoolingParams(activation=False)


def pooler(method: str = "LAST") -> Pooler:
    return pooler_of(*method.split("+"), dim=DIM, classifier=CLASSIFIER)


def rules(
    *, tasks: Collection[Task] = tuple(Task), classifier: bool = True, skips_prompt: bool = False
) -> TaskRules:
    embed = Part(
        method=MethodSpec(names=("LAST",)), head=EmbeddingSpec(inputs=DIM, normalize=False)
    )
    tokens = Part(method=ALL, head=embed.head)
    routes: dict[Task, tuple[Part, ...]] = {Task.EMBED: (embed,), Task.TOKEN_EMBED: (tokens,)}
    if classifier:
        output = DenseSpec(weight="score.weight", bias=None, inputs=DIM, outputs=3)
        head = ClassifierSpec(output=output)
        routes[Task.CLASSIFY] = (Part(method=embed.method, head=head),)
        routes[Task.TOKEN_CLASSIFY] = (Part(method=ALL, head=head),)
    return TaskRules(model_tasks=frozenset(tasks), routes=routes, skips_prompt=skips_prompt)


def request(task: Task, **params: object) -> PoolingRequest:
    return PoolingRequest(
        request_id="a",
        token_ids=(1,),
        task=task,
        params=PoolingParams(**params),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("method", ["LAST", "CLS", "MEAN"])
def test_mixed_tasks_lengths_and_chunks_in_one_batch(method: str) -> None:
    prompts = Prompts(DIM)
    a = prompts.add("a", 3, Task.TOKEN_EMBED)
    b = prompts.add("b", 4, Task.EMBED)
    c = prompts.add("c", 2, Task.TOKEN_CLASSIFY, LOGITS)
    d = prompts.add("d", 5, Task.CLASSIFY, LOGITS)
    e = prompts.add("e", 1, Task.EMBED, PoolingParams(dimensions=2))
    pick = {"LAST": lambda x: x[-1], "CLS": lambda x: x[0], "MEAN": lambda x: x.mean(0)}[method]
    answers = pool_all(
        pooler(method),
        prompts,
        [
            [("a", 0, 2), ("b", 0, 4), ("d", 0, 2)],
            [("d", 2, 1), ("a", 2, 1), ("c", 0, 1)],
            [("e", 0, 1), ("c", 1, 1), ("d", 3, 2)],
        ],
    )
    assert torch.equal(answers["a"], a)
    assert torch.equal(answers["c"], c[:, :3])
    for request_id, expected in (("b", pick(b)), ("d", pick(d)[:3]), ("e", pick(e)[:2])):
        assert answers[request_id].shape == expected.shape
        assert torch.allclose(answers[request_id], expected)  # MEAN: the order of 4 additions


def test_outputs_are_in_batch_order_and_of_finished_requests_only() -> None:
    prompts = Prompts(DIM)
    for request_id, task in (("a", Task.TOKEN_EMBED), ("b", Task.EMBED), ("c", Task.TOKEN_EMBED)):
        prompts.add(request_id, 2, task)
    prompts.add("d", 3, Task.EMBED)
    step = prompts.step(0, [("c", 0, 2), ("d", 0, 1), ("b", 0, 2), ("a", 0, 2)])
    pooled = pooler().pool(*prompts.pack(step))
    assert [p.request_id for p in pooled] == ["c", "b", "a"]
    assert [tuple(p.rows.shape) for p in pooled] == [(2, DIM), (DIM,), (2, DIM)]


def test_each_request_has_its_own_parameters() -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 1, Task.EMBED, PoolingParams(normalize=True))
    prompts.add("b", 1, Task.EMBED)
    prompts.hidden["b"] *= 10
    answers = pool_all(pooler(), prompts, [[("a", 0, 1), ("b", 0, 1)]])
    assert abs(answers["a"].norm() - 1) < 1e-6
    assert torch.equal(answers["b"], prompts.hidden["b"][0])


def test_supported_is_what_the_model_declares_and_the_runner_knows() -> None:
    assert rules().supported_tasks == (
        Task.EMBED,
        Task.CLASSIFY,
        Task.TOKEN_EMBED,
        Task.TOKEN_CLASSIFY,
    )
    assert rules(classifier=False).supported_tasks == (Task.EMBED, Task.TOKEN_EMBED)
    only = {Task.TOKEN_EMBED, Task.EMBED_AND_TOKEN_CLASSIFY}
    assert rules(tasks=only).supported_tasks == (Task.TOKEN_EMBED,)


def test_an_unsupported_task_lists_both_sides_and_what_to_do() -> None:
    p = rules(tasks={Task.EMBED, Task.CLASSIFY}, classifier=False)
    p.check_task(Task.EMBED)
    with pytest.raises(
        UnsupportedTaskError,
        match=r"task='classify'.*model offers \['embed', 'classify'\].*runner supports "
        r"\['embed', 'token_embed'\]; select one of \['embed'\], or configure a classifier head",
    ):
        p.check_task(Task.CLASSIFY)
    with pytest.raises(UnsupportedTaskError, match=r"select one of \['embed'\]$"):
        p.check_task(Task.TOKEN_EMBED)
    with pytest.raises(UnsupportedTaskError, match="use a checkpoint that offers"):
        rules(tasks={Task.EMBED_AND_TOKEN_CLASSIFY}).check_task(Task.EMBED)


@pytest.mark.parametrize(
    ("task", "params", "message"),
    [
        (Task.EMBED, {"activation": False}, r"activation=False does not apply to task='embed'"),
        (Task.CLASSIFY, {"normalize": True}, r"normalize=True .*only \['activation'\]"),
        (Task.TOKEN_CLASSIFY, {"dimensions": 2, "normalize": False}, r"normalize=.*dimensions="),
        (Task.EMBED, {"dimensions": 0}, r"dimensions=0 is not valid: expected 1 .* 4"),
        (Task.TOKEN_EMBED, {"dimensions": 5}, r"dimensions=5 is not valid: expected 1 .* 4"),
    ],
)
def test_parameters_that_do_not_apply_are_refused(
    task: Task, params: dict[str, object], message: str
) -> None:
    with pytest.raises(RequestError, match=rf"request 'a': .*{message}"):
        rules().check_params(request(task, **params))


@pytest.mark.parametrize(
    ("task", "params"),
    [
        (Task.EMBED, {"normalize": False, "dimensions": 4}),
        (Task.TOKEN_EMBED, {"dimensions": 1}),
        (Task.CLASSIFY, {"activation": False}),
        (Task.TOKEN_CLASSIFY, {}),
    ],
)
def test_parameters_that_apply_are_accepted(task: Task, params: dict[str, object]) -> None:
    rules().check_params(request(task, **params))


def test_parameters_of_an_unsupported_task_are_refused_for_the_task() -> None:
    with pytest.raises(UnsupportedTaskError, match="'classify'"):
        rules(classifier=False).check_params(request(Task.CLASSIFY))


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"pooling='LAST\+ALL'.*CLS, LAST, MEAN"):
        pooler("LAST+ALL")


@pytest.mark.parametrize("leave", ["abort", "reset"])
def test_aborted_requests_leave_nothing_and_their_id_is_free(leave: str) -> None:
    prompts = Prompts(DIM)
    expected = prompts.add("a", 3, Task.TOKEN_EMBED)
    p = pooler()
    pool_all(p, prompts, [[("a", 0, 2)]])
    p.check_integrity({"a"})
    with pytest.raises(LedgerError, match=r"retained for \['a'\], active requests are \['b'\]"):
        p.check_integrity({"b"})
    if leave == "abort":
        p.abort("nobody")
        assert p.num_retained == 1
        p.abort("a")
    else:
        p.reset()
    p.check_integrity(())
    assert torch.equal(pool_all(p, prompts, [[("a", 0, 3)]])["a"], expected)


def test_a_batch_that_contradicts_itself_is_our_bug() -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 2, Task.EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 2)]))
    with pytest.raises(LedgerError, match=r"expected \[T >= 2, D\], got \(1, 4\)"):
        pooler().pool(hidden[:1], batch)
    with pytest.raises(LedgerError, match=r"row_offsets: expected int64 \(2,\), got .* \(3,\)"):
        PoolingBatch(entries=batch.entries, row_offsets=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(LedgerError, match=r"row_offsets: expected int64 .* got torch.int32"):
        PoolingBatch(entries=batch.entries, row_offsets=torch.zeros(2, dtype=torch.int32))
    moved = PoolingEntry(request=prompts.requests["a"], row=1, count=2, start=0, finishes=True)
    with pytest.raises(LedgerError, match=r"'a': expected rows packed from row=0"):
        PoolingBatch(entries=(moved,), row_offsets=batch.row_offsets)
