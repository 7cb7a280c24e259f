"""A finding as a stand-alone script: two configurations of the engine, one case, no harness."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from harness.axes import Plan
from harness.case import Case
from harness.record import Json
from harness.systems.base import Encoded


@runtime_checkable
class Configurable(Protocol):
    """A system that can say how it would be configured in a cell."""

    def configuration(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Json:
        """The engine's configuration as plain data."""
        ...


@runtime_checkable
class Reporting(Protocol):
    """A system that can tell a finding to its own tracker: a script that imports only it."""

    def report_script(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        title: str,
        reference: Mapping[str, str],
        candidate: Mapping[str, str],
        limit: float,
    ) -> str:
        """`reference` and `candidate` are cells; `limit` is how far they may be apart."""
        ...


_SCRIPT = '''\
"""{title}

Run it where the engine is installed: python THIS_FILE [MODEL_FOLDER]
Prints, for each prompt, how far the second run is from the first; exits 1 if any is beyond LIMIT.
"""

import json
import os
import sys

os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")  # before torch loads: fixes the order of sums

from engine.config import config_from_json
from engine.engine import Engine
from engine.plan import plan_from_json
from engine.request import PoolingParams, PoolingRequest, Task

LIMIT = {limit!r}  # relative L2; 0 means that not a bit may differ
TASK = {task!r}
PARAMS = {params!r}
PROMPTS = json.loads({prompts!r})  # [token ids, type ids]
REFERENCE, REFERENCE_PLAN = json.loads({reference!r}), json.loads({reference_plan!r})
CANDIDATE, CANDIDATE_PLAN = json.loads({candidate!r}), json.loads({candidate_plan!r})
ATTEMPTS = {attempts}  # more than 1 where the failure depends on real concurrency


def run(config, plan):
    if len(sys.argv) > 1:
        config = {{**config, "model": sys.argv[1]}}
    requests = [
        PoolingRequest(
            request_id=str(index),
            token_ids=tuple(tokens),
            type_ids=tuple(types),
            task=Task(TASK),
            params=PoolingParams(**PARAMS),
        )
        for index, (tokens, types) in enumerate(PROMPTS)
    ]
    with Engine(config_from_json(config)) as engine:
        outputs = engine.run(requests, plan=plan_from_json(plan)).outputs
    return [outputs[str(index)].values.double() for index in range(len(requests))]


def main():
    failed = False
    expected = run(REFERENCE, REFERENCE_PLAN)
    for _ in range(ATTEMPTS):
        for index, (a, b) in enumerate(zip(expected, run(CANDIDATE, CANDIDATE_PLAN), strict=True)):
            apart = float(((b - a).norm(dim=-1) / a.norm(dim=-1)).max())
            failed |= not apart <= LIMIT or (LIMIT == 0 and not a.equal(b))
            print(f"prompt {{index}}: relative L2 {{apart:.3g}}")
    print("DIFFERS" if failed else "agrees")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
'''


def script(
    *,
    title: str,
    case: Case,
    prompts: Sequence[Encoded],
    reference: Json,
    reference_plan: Plan,
    candidate: Json,
    candidate_plan: Plan,
    plants: Sequence[str],
    limit: float,
    attempts: int,
) -> str:
    """The script's text. `plants` are plug-ins (`module:callable`) put into both configurations."""

    def config(data: Json) -> str:
        return json.dumps({**data, "plugins": list(plants)}, sort_keys=True)

    return _SCRIPT.format(
        title=title,
        limit=limit,
        task={"score": "classify"}.get(case.task, case.task),
        params={
            "normalize": case.normalize,
            "activation": case.activation,
            "dimensions": case.dimensions,
        },
        prompts=json.dumps([[list(p.token_ids), list(p.type_ids)] for p in prompts]),
        reference=config(reference),
        reference_plan=json.dumps(reference_plan),
        candidate=config(candidate),
        candidate_plan=json.dumps(candidate_plan),
        attempts=attempts,
    )
