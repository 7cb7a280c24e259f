"""A finding as a script for vLLM's own tracker: it imports vLLM and nothing of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from harness.record import Json

_SCRIPT = '''\
"""{title}

{environment}

Run it where vLLM is installed, once for each configuration: python THIS_FILE reference OUT.json,
then python THIS_FILE candidate OUT.json. The second run prints how far each prompt's output is from
the first, and exits 1 if any is beyond LIMIT.
"""

import json
import math
import os
import sys

os.environ.update({variables!r})

CONFIGURATIONS = json.loads({configurations!r})
TASK, PARAMETERS, LIMIT = {task!r}, {parameters!r}, {limit!r}  # LIMIT: relative L2
PROMPTS = json.loads({prompts!r})


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]


def main():
    from vllm import LLM, PoolingParams
    from vllm.config import PoolerConfig

    which, place = sys.argv[1:]
    arguments = CONFIGURATIONS[which]
    arguments["model"] = os.environ.get("MODEL", arguments["model"])
    engine = LLM(**arguments, pooler_config=PoolerConfig(task=TASK))
    prompts = [{{"prompt_token_ids": ids}} for ids in PROMPTS]
    answers = engine.encode(prompts, PoolingParams(**PARAMETERS), pooling_task=TASK)
    found = [flat(answer.outputs.data.float().tolist()) for answer in answers]
    if which == "reference":
        with open(place, "w") as file:
            json.dump(found, file)
        return 0
    worst = 0.0
    with open(place) as file:
        for index, (a, b) in enumerate(zip(json.load(file), found)):
            far = math.dist(a, b) / math.hypot(*a)
            worst = max(worst, far)
            print(f"prompt {{index}} of {{len(PROMPTS[index])}} tokens: relative L2 {{far:.3g}}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
'''


def script(
    *,
    title: str,
    about: Mapping[str, str],
    reference: Mapping[str, Json],
    candidate: Mapping[str, Json],
    variables: Mapping[str, str],
    task: str,
    parameters: Mapping[str, Json],
    prompts: Sequence[Sequence[int]],
    limit: float,
) -> str:
    """The script as text. `reference` and `candidate` are arguments of vLLM's `LLM`."""
    environment = ", ".join(f"{name} {value}" for name, value in about.items())
    return _SCRIPT.format(
        title=title.replace('"""', "'''"),
        environment=environment or "version unknown",
        variables=dict(variables),
        configurations=json.dumps({"reference": dict(reference), "candidate": dict(candidate)}),
        task=task,
        parameters=dict(parameters),
        prompts=json.dumps([list(ids) for ids in prompts]),
        limit=limit,
    )
