"""JUnit XML: valid by the common schema, counted rightly, its tests named alike in every run.

Passes wrongly if the schemas accepted anything, or what is vacuous looked like a test that passed.
Ruled out by `test_the_schemas_refuse_what_is_not_junit`, `test_two_tests_of_one_name_are_refused`
and suites/meta/test_suites_can_fail.py: `junit-passes-what-is-vacuous`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import xmlschema

from harness.record import Outcome
from reports.junit import junit
from reports.load import Run
from reports.view.lattice import lattices
from suites.contract.recorded import ACTING, RUNS, written_and_loaded

COMMON_FILE = Path(__file__).with_name("junit-10.xsd")
COMMON_SHA256 = "a1a816f58d1bf95ebabf371994df0b9246dee66ea9572fbec4f9296f1b2c0ff6"
COMMON = xmlschema.XMLSchema(COMMON_FILE)
NARROW = xmlschema.XMLSchema(COMMON_FILE.with_name("junit-narrow.xsd"))
SCHEMAS = {"common": COMMON, "narrow": NARROW}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return written_and_loaded(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("name", list(RUNS))
def test_it_is_valid(loaded: dict[str, Run], name: str) -> None:
    document = junit(loaded[name])
    COMMON.validate(document.decode())
    NARROW.validate(document.decode())
    assert not ACTING & set(document.decode())


def test_the_common_schema_is_as_others_publish_it() -> None:
    assert hashlib.sha256(COMMON_FILE.read_bytes()).hexdigest() == COMMON_SHA256, (
        "junit-10.xsd is not ours to change: suites/contract/THIRD-PARTY.md says where it is from"
    )


@pytest.mark.parametrize(
    ("old", "new", "schemas"),
    [
        ("classname=", "class=", ("common", "narrow")),
        ("testsuites", "suites", ("common", "narrow")),
        ("<properties>", "<facts/><properties>", ("common", "narrow")),
        ('tests="', 'tests="-', ("narrow",)),
    ],
)
def test_the_schemas_refuse_what_is_not_junit(
    loaded: dict[str, Run], old: str, new: str, schemas: tuple[str, ...]
) -> None:
    good = junit(loaded["interrupted"]).decode()
    assert good.replace(old, new) != good
    for schema in schemas:
        assert not SCHEMAS[schema].is_valid(good.replace(old, new))


def test_two_tests_of_one_name_are_refused(loaded: dict[str, Run]) -> None:
    good = junit(loaded["interrupted"]).decode()
    again = re.sub(r"(<testcase .*?/>)", r"\1\1", good, count=1)
    assert again != good
    assert not NARROW.is_valid(again)


def test_counts_cells_and_edges(loaded: dict[str, Run]) -> None:
    root = Xml.fromstring(junit(loaded["clean"]))
    suite = root.find("testsuite[@name='parity.tiny-qwen3']")
    assert suite is not None
    kinds = [str(case.get("classname")).rpartition(".")[2] for case in suite.iter("testcase")]
    assert {k: kinds.count(k) for k in sorted(set(kinds))} == {
        "baseline": 15,
        "edge": 32,
        "oracle": 1,
        "setting": 1,
    }
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    encoder = root.find("testsuite[@name='parity.tiny-bert']")
    assert encoder is not None
    assert len(encoder.findall("testcase/skipped")) == 8


def test_names_are_the_same_in_every_run(loaded: dict[str, Run]) -> None:
    def names(run: Run) -> set[tuple[str | None, str | None]]:
        cases = Xml.fromstring(junit(run)).iter("testcase")
        return {(c.get("classname"), c.get("name")) for c in cases if "qwen" in str(c.attrib)}

    assert names(loaded["clean"]) == names(loaded["failing"])


def test_failures_say_how_to_see_them(loaded: dict[str, Run]) -> None:
    run = loaded["failing"]
    root = Xml.fromstring(junit(run))
    failed = root.findall("testsuite[@name='parity.tiny-qwen3']/testcase[failure]")
    lattice = next(m for m in lattices(run) if m.checkpoint == "tiny-qwen3")
    bad = [x for x in (*lattice.cells, *lattice.edges) if x.look.word == "FAIL"]
    assert len(failed) == len(bad) > 0
    text = failed[0].findtext("failure") or ""
    assert "F-tiny-3c9d: parity replay F-tiny-3c9d" in text
    assert "exceeds its bound" in text


def test_a_vacuous_comparison_is_no_pass(loaded: dict[str, Run]) -> None:
    run = loaded["clean"]
    pairs = tuple(replace(p, outcome=Outcome.VACUOUS, reason="did not act") for p in run.pairs)
    root = Xml.fromstring(junit(replace(run, pairs=pairs)))
    assert int(root.get("failures", "0")) == len(root.findall("testsuite/testcase/failure")) > 0
    assert not root.findall("testsuite/testcase[@name='nothing']")
