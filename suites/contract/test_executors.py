"""Where the workers are changes no verdict: two Ray nodes give what one process gives.

That both nodes worked is read from files that only their workers write, under the nodes' own names.

Passes wrongly if a node with other software than the driver's were let in and happened to agree.
Ruled out by suites/meta/test_suites_can_fail.py: `any-node-will-do`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.campaign.executors.node import differing
from harness.campaign.manifest import software
from harness.record import CaseEndRecord, NoticeRecord, Outcome, PairRecord, Record, read_records
from suites.contract.campaigns import ONE_CASE, campaign
from suites.contract.command import parity
from suites.contract.misbehaving import LONG
from suites.contract.ray_nodes import two_nodes
from suites.contract.sessions import TEST_TIMEOUT_S

ROOT = Path(__file__).resolve().parents[2]

DRIVER = """
import json, sys
from contextlib import closing
from pathlib import Path

from harness.campaign.executors import executor_named
from suites.contract.campaigns import campaign

if __name__ == "__main__":
    folder, address, plugin, cases = sys.argv[1:]
    with closing(executor_named("ray", workers=2, address=address)) as executor:
        campaign(Path(folder), plugin, "tiny-qwen3", axis="chunk", cases=json.loads(cases),
                 shards=2, workers=2, executor=executor)
"""


def of_tokens(*lengths: int) -> str:
    prompts = [{"tokens": [7 + n % 5] * n} for n in lengths]
    return json.dumps({"task": "embed", "prompts": prompts})


def on_ray(folder: Path, address: str, plugin: str, *cases: str) -> list[Record]:
    """The records of a run on a cluster, whose driver is a process of its own."""
    folder.mkdir()
    script = folder / "driver.py"
    script.write_text(DRIVER)
    done = subprocess.run(
        [sys.executable, str(script), str(folder), address, plugin, json.dumps(cases)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(read_records(folder / "run"))


def verdicts(records: list[Record]) -> Counter[str]:
    """All that is judged, figures included."""
    return Counter(
        json.dumps(
            [r.pair_id, r.case_id, r.outcome, r.reason, r.num_compared, r.measurements],
            sort_keys=True,
            default=str,
        )
        for r in records
        if isinstance(r, PairRecord)
    )


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "run" / "outputs").iterdir()}


@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_two_nodes_give_the_verdicts_of_one_process(tmp_path: Path) -> None:
    cases = (ONE_CASE, of_tokens(40, 3), of_tokens(9, 21), of_tokens(5, 33))
    fatal = (of_tokens(9, 8), of_tokens(LONG, 3), of_tokens(7, 6), of_tokens(5, 4))
    (tmp_path / "here").mkdir()
    with two_nodes(tmp_path / "nodes") as address:
        found = on_ray(tmp_path / "ray", address, "tell_node", *cases)
        assert len(list((tmp_path / "nodes").iterdir())) == 2
        lost = on_ray(tmp_path / "lost", address, "kill_worker_on_long_prompt", *fatal)
    _, expected = campaign(
        tmp_path / "here", "tell_node", "tiny-qwen3", axis="chunk", cases=cases, shards=2
    )
    assert verdicts(found) == verdicts(expected)
    assert sum(verdicts(found).values()) > len(cases)
    assert outputs(tmp_path / "ray") == outputs(tmp_path / "here")
    # The same cluster, and a worker that is killed in the middle: its case is the whole loss.
    (told,) = [record.text for record in lost if isinstance(record, NoticeRecord)]
    assert "was not finished: its worker died" in told
    assert "tiny-qwen3 2/2: case" in told
    assert len([record for record in lost if isinstance(record, CaseEndRecord)]) == len(fatal) - 1
    judged = {record.case_id for record in lost if isinstance(record, PairRecord)}
    assert judged == {record.case_id for record in lost if isinstance(record, CaseEndRecord)}
    assert Outcome.FAIL not in {r.outcome for r in lost if isinstance(r, PairRecord)}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--executor", "slurm"), "no executor 'slurm'; expected one of local, ray"),
        (("--ray-address", "10.0.0.1:6379"), "needs --executor ray, got --executor local"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_before_a_run_begins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.setenv("PARITY_HOME", str(tmp_path))
    answer = parity(capsys, "run", "--model", "tiny-bert", *arguments)
    assert answer.code == 2
    assert told in answer.told
    assert not (tmp_path / "runs").exists()


def command(home: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """`parity run` on one small encoder, in a process of its own; `before`: what it runs first."""
    script = f"import sys\n{before}\nfrom harness.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", script, "run", "--model", "tiny-bert", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PARITY_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_nothing_at_the_address_is_one_clear_message(tmp_path: Path, address: str) -> None:
    done = command(tmp_path, "--executor", "ray", "--ray-address", address)
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert f"--ray-address {address}: nothing answers there" in told
    assert "Traceback" not in told
    assert not (tmp_path / "runs").exists()


def test_without_ray_the_message_says_how_to_have_it(tmp_path: Path) -> None:
    done = command(tmp_path, "--executor", "ray", before="sys.modules['ray'] = None")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert "pip install 'pooling-parity[ray]'" in told
    assert "Traceback" not in told


def test_nobody_who_did_not_ask_imports_ray() -> None:
    script = (
        "import sys; import harness.cli.app, harness.campaign.local;"
        "import harness.campaign.executors.node;"
        "from harness.campaign.executors import executor_named; executor_named('local');"
        "assert 'ray' not in sys.modules; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_a_node_with_other_software_is_told_apart() -> None:
    here = software()
    assert differing(here, here) == ""
    assert "torch '0', expected" in differing(here, {**here, "torch": "0"})
