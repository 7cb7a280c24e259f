"""A request that cannot be run is refused by name, and nothing happens to its company.

Passes wrongly if answers were given out by place and every refused request stood behind the good
ones. Ruled out by suites/meta/test_suites_can_fail.py: `answers-move-up-for-who-was-refused`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from engine.config import (
    EngineConfig,
    ParallelConfig,
    SchedulerConfig,
    StreamPolicy,
)
from engine.engine import Engine
from engine.errors import RequestError, UnsupportedTaskError
from engine.request import PoolingParams, PoolingRequest, Task
from engine.resources import Resources
from harness.checkpoints.catalogue import path_of

MAX_LEN = 64


def request(name: str, length: int = 5, task: Task = Task.EMBED, **more: object) -> PoolingRequest:
    tokens = tuple(5 + (7 * i + len(name)) % 200 for i in range(length))
    return replace(PoolingRequest(request_id=name, token_ids=tokens, task=task), **more)


BAD = {
    "empty": request("empty", 0),
    "long": request("long", MAX_LEN + 1),
    "outside": request("outside", token_ids=(7, 10**6, 8)),
    "negative": request("negative", token_ids=(7, -1)),
    "wide": request("wide", params=PoolingParams(dimensions=10**6)),
    "foreign": request("foreign", params=PoolingParams(activation=False)),
    "types": request("types", type_ids=(0, 0)),
    "task": request("task", task=Task.EMBED_AND_TOKEN_CLASSIFY),
}
TOLD = {
    "empty": "request 'empty' has an empty prompt; give at least one token",
    "long": f"request 'long' has {MAX_LEN + 1} tokens, more than max_model_len={MAX_LEN}",
    "outside": "request 'outside': token id 1000000 is out of range; tiny-qwen3 has ids 0..1023",
    "negative": "request 'negative': token id -1 is out of range; tiny-qwen3 has ids 0..1023",
    "wide": "request 'wide': dimensions=1000000 is not valid: expected 1 to the embedding's size",
    "foreign": "request 'foreign': activation=False does not apply to task='embed': expected only "
    "['dimensions', 'normalize']",
    "types": "request 'types': 2 type ids for 5 tokens",
    "task": "task='embed&token_classify' is not supported: the model offers ['embed', 'classify', "
    "'token_embed', 'token_classify']",
}


def config(**changes: object) -> EngineConfig:
    chunked = SchedulerConfig(max_num_batched_tokens=16, max_num_seqs=2)
    return EngineConfig(
        model=path_of("tiny-qwen3"), max_model_len=MAX_LEN, **{"scheduler": chunked, **changes}
    )


@pytest.fixture(scope="module")
def resources() -> Resources:
    return Resources(config())


@pytest.fixture
def engine(resources: Resources) -> Iterator[Engine]:
    with Engine(config(), resources=resources) as started:
        yield started


def test_every_bad_request_has_its_words() -> None:
    assert BAD.keys() == TOLD.keys()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_named_with_what_is_valid(engine: Engine, name: str) -> None:
    with pytest.raises((RequestError, UnsupportedTaskError)) as caught:
        engine.check(BAD[name])
    assert TOLD[name] in str(caught.value)


def test_an_encoder_names_its_tasks() -> None:
    with (
        Engine(EngineConfig(model=path_of("tiny-bert"), max_model_len=MAX_LEN)) as encoder,
        pytest.raises(
            UnsupportedTaskError,
            match=r"task='classify' is not supported: .*select one"
            r" of \['embed', 'token_embed'\]",
        ),
    ):
        encoder.check(request("scored", task=Task.CLASSIFY))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"parallel": ParallelConfig(pipeline_parallel_size=2)},
        {
            "scheduler": SchedulerConfig(
                max_num_batched_tokens=16, max_num_seqs=2, async_scheduling=True
            ),
            "stream": StreamPolicy.parse("lag(copy@last)"),
        },
    ],
    ids=["sync", "pp", "async"],
)
def test_bad_company_changes_no_bit(resources: Resources, changes: dict[str, object]) -> None:
    good = [
        request("first", 40),
        request("second", 3, Task.TOKEN_EMBED),
        request("third", 17, Task.CLASSIFY),
        request("fourth", MAX_LEN),
    ]
    mixed = []
    for index, bad in enumerate(BAD.values()):
        mixed += [bad, *good[index : index + 1]]
    with Engine(config(**changes), resources=resources) as engine:
        alone = engine.run(good)
        together = engine.run(mixed)
    assert together.refused.keys() == BAD.keys()
    assert all(TOLD[name] in reason for name, reason in together.refused.items())
    assert together.outputs.keys() == alone.outputs.keys() == {r.request_id for r in good}
    for name, output in alone.outputs.items():
        assert torch.equal(output.values, together.outputs[name].values), name


def test_the_same_id_twice_refuses_the_second_only(engine: Engine) -> None:
    result = engine.run([request("one", 5), request("one", 9)])
    assert result.refused == {"one": "request id 'one' is used twice in one run"}
    assert result.outputs["one"].num_prompt_tokens == 5
