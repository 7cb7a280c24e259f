"""All five tasks in one batch: whose rows are whose, in every way a batch can be run.

Passes wrongly if no step wrote over rows before they were copied to the host. Ruled out by
suites/meta/test_suites_can_fail.py: `borrowed-rows-leave-a-mixed-step`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.config import StreamPolicy
from engine.engine import Engine
from engine.request import PoolingParams, PoolingRequest, Task
from harness.checkpoints.catalogue import path_of
from harness.oracle.oracle import Oracle
from suites.unit.models.packed import prompt
from suites.unit.pooling.variants import config_of, copied, linear, relative_l2, run

BOUND = 1e-5
"""As in `test_hf_heads`."""
YES, NO = 258, 257
PLAIN = dict.fromkeys((Task.EMBED, Task.TOKEN_EMBED), PoolingParams(normalize=False))
"""Heads that compute nothing: they hand out the very rows that pooling gave them."""
TASKS = (*Task, *reversed(Task), Task.TOKEN_EMBED, Task.EMBED_AND_TOKEN_CLASSIFY)
LENGTHS = (5, 16, 17, 33, 40, 1, 50, 31, 16, 64, 2, 15)


def requests() -> list[PoolingRequest]:
    return [
        PoolingRequest(
            request_id=f"{place}-{task}",
            token_ids=tuple(prompt(length, seed=place)),
            task=task,
            params=PLAIN.get(task, PoolingParams()),
        )
        for place, (task, length) in enumerate(zip(TASKS, LENGTHS, strict=True))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = copied("tiny-qwen3", tmp_path_factory.mktemp("mixed") / "model")
    linear(found, "sparse_linear.safetensors", 1, 64)
    return found


@pytest.fixture(scope="module")
def truths(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """float64, one prompt at a time."""
    oracle = Oracle(path_of("tiny-qwen3"))
    sparse = linear(tmp_path_factory.mktemp("again"), "sparse.safetensors", 1, 64)
    found = {}
    for request in requests():
        ids = request.token_ids
        rows = oracle.hidden(ids)
        last = torch.nn.functional.normalize(rows[-1], dim=-1)
        weights = sparse(rows).relu()
        found[request.request_id] = {
            Task.EMBED: rows[-1],
            Task.TOKEN_EMBED: rows,
            Task.CLASSIFY: torch.tensor([oracle.yes_no_logit(ids, YES, NO)]).double().sigmoid(),
            Task.TOKEN_CLASSIFY: weights,
            Task.EMBED_AND_TOKEN_CLASSIFY: torch.cat([last, weights.flatten()]),
        }[request.task]
    return found


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("chunk", [None, 16])
def test_every_request_gets_its_own_rows(
    folder: Path, truths: dict[str, torch.Tensor], *, chunk: int | None, overlaps: bool, stages: int
) -> None:
    """The copy to the host lags, so that a borrowed row would be another step's by then."""
    for policy in ("threaded", "lag(copy@last)"):
        config = config_of(
            folder,
            chunk=chunk,
            stages=stages,
            overlaps=overlaps,
            stream=StreamPolicy.parse(policy),
        )
        result = run(config, requests())
        assert set(result.outputs) == set(truths)
        for name, truth in truths.items():
            assert relative_l2(result.outputs[name].values, truth) <= BOUND, (policy, name)
        assert not any(rank.hazards for rank in result.witness.ranks)
        steps = {entry.request_id for plan in result.plan[:1] for entry in plan.entries}
        assert len({name.split("-", 1)[1] for name in steps}) > 1, "no step mixed tasks"


def test_what_is_returned_is_stored_apart(folder: Path) -> None:
    """A second run writes every buffer again; no answer of the first may move."""
    with Engine(config_of(folder, chunk=16, overlaps=True)) as engine:
        first = engine.run(requests()).outputs
        kept = {name: output.values.clone() for name, output in first.items()}
        storages = {output.values.untyped_storage().data_ptr() for output in first.values()}
        engine.run(requests()[::-1])
    assert len(storages) == len(first)
    assert all(torch.equal(first[name].values, kept[name]) for name in kept)
