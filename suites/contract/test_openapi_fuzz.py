"""Requests that schemathesis makes of the served document: no server error, no broken promise.

Every operation is asked what the document allows, what it forbids and the values at its edges. The
checks are schemathesis' own, but for one: it wants whatever fits the schema accepted, and we refuse
a parameter that does not apply, which a schema cannot say.

Passes wrongly if schemathesis asked nothing, or of the wrong server. Ruled out by
`test_a_broken_promise_is_seen` below, and by its own count of operations tested.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from suites.contract.sessions import TEST_TIMEOUT_S
from suites.contract.test_server import Served, served
from suites.figures import show
from suites.unit.pooling.variants import hugging_face

pytestmark = [pytest.mark.xdist_group("openapi"), pytest.mark.timeout(TEST_TIMEOUT_S)]

FEW, MANY = 10, 50
"""Requests drawn for each operation, beside the fixed ones at the edges of its schema."""


def model(name: str, folder: Path) -> str:
    """What `parity serve` is given: a known checkpoint, or a folder made for this."""
    if name != "classifier":
        return name
    hugging_face("tiny-bert", "BertForSequenceClassification", folder / name, num_labels=3)
    return str(folder / name)


def fuzz(document: str, *options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`schemathesis run` on a document, seeded, in a folder of its own."""
    command = [Path(sys.executable).with_name("schemathesis"), "run", document, "--seed", "0"]
    return subprocess.run(
        [*command, "--no-color", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=TEST_TIMEOUT_S,
    )


def held(server: Served, folder: Path, examples: int, *more: str) -> None:
    found = fuzz(
        f"{server.url}/openapi.json",
        *("--exclude-checks", "positive_data_acceptance", "--max-examples", str(examples)),
        *more,
        folder=folder,
    )
    assert found.returncode == 0, found.stdout
    selected = re.search(r"Selected: (\d+)/\1\s+Tested: \1\n", found.stdout)
    requests = re.search(r"(\d+) generated", found.stdout)
    assert selected, found.stdout
    assert requests, found.stdout
    show(
        f"schemathesis on {server.url}",
        ("operations", "requests", "failures"),
        [(selected.group(1), requests.group(1), 0)],
    )


def test_a_bi_encoder_keeps_its_promises(tmp_path: Path) -> None:
    with served(tmp_path, model="tiny-bert") as server:
        held(server, tmp_path, FEW, "--phases", "fuzzing")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-bert", "classifier"])
def test_every_endpoint_keeps_its_promises(tmp_path: Path, name: str) -> None:
    """Of three models that between them offer every endpoint."""
    with served(tmp_path, model=model(name, tmp_path)) as server:
        held(server, tmp_path, MANY)


def test_a_broken_promise_is_seen(tmp_path: Path) -> None:
    """A document that promises an answer which no server of ours gives."""
    with served(tmp_path, model="tiny-bert") as server:
        promise = {"200": {"description": "", "content": {"text/plain": {}}}}
        document = {
            "openapi": "3.1.0",
            "info": {"title": "another", "version": "1"},
            "paths": {"/health": {"get": {"responses": promise}}},
        }
        path = tmp_path / "document.json"
        path.write_text(json.dumps(document))
        found = fuzz(str(path), "--url", server.url, "--max-examples", str(FEW), folder=tmp_path)
    assert found.returncode == 1, found.stdout
    assert "Undocumented Content-Type" in found.stdout
