"""Other forms of a report: Markdown, annotations and tables, hostile text and all.

Passes wrongly if the prompts were not where they are looked for, masked or not. Ruled out by
suites/meta/test_suites_can_fail.py: `nothing-is-masked`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness.record import FindingRecord, NoticeRecord, PairRecord
from reports.annotations import MAX_LINES, annotation_lines
from reports.junit import junit
from reports.load import Run, load_run
from reports.markdown import markdown
from reports.redaction import redacted
from suites.contract.command import parity
from suites.contract.recorded import ACTING, RUNS, written_and_loaded
from suites.unit.reports.fixtures import (
    failing_run,
    finding,
)
from suites.unit.reports.parts import CHECKPOINTS, RecordedRun


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return written_and_loaded(tmp_path_factory.mktemp("runs"))


@pytest.fixture(params=list(RUNS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ----------------------------------------------------------------------------------- annotations


def test_annotations_are_lines_of_their_own(loaded: dict[str, Run], name: str) -> None:
    lines = annotation_lines(loaded[name])
    assert bool(lines) == (name != "clean")
    assert len(lines) <= MAX_LINES
    for line in lines:
        assert re.fullmatch(r"::error title=[^\n\r:,]*::[^\n\r]+", line), line
        assert not ACTING & set(line)


def test_more_than_a_step_may_have_are_counted(loaded: dict[str, Run]) -> None:
    one = finding(CHECKPOINTS[0], ())
    many = tuple(replace(one, finding_id=f"F-{i}", title=f"title {i}") for i in range(70))
    lines = annotation_lines(replace(loaded["clean"], findings=many, pairs=loaded["failing"].pairs))
    assert len(lines) == MAX_LINES
    counted = int(re.search(r"::(\d+) more in the report", lines[-1])[1])  # type: ignore[index]
    assert counted >= 70 - (MAX_LINES - 1)


# ---------------------------------------------------------------------------------------- tables


def test_tables_hold_every_record(
    loaded: dict[str, Run], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RUNS[name]().write(tmp_path / "run")
    answer = parity(capsys, "report", str(folder), "--format", "csv,parquet")
    assert answer.code == 0
    run = loaded[name]
    counts = {
        "cases": len(run.cases),
        "executions": len(run.executions),
        "pairs": len(run.pairs),
        "measurements": sum(len(p.measurements) for p in run.pairs),
        "findings": len(run.findings),
    }
    for table, count in counts.items():
        typed = pd.read_parquet(folder / "tables" / f"{table}.parquet")
        assert len(typed) == count, table
        if count:
            # "nan" is a word that a prompt or a name may hold; an empty cell is an empty text.
            plain = pd.read_csv(folder / "tables" / f"{table}.csv", keep_default_na=False)
            assert list(plain.columns) == [c.lstrip("=") for c in typed.columns]
            assert len(plain) == count
    assert sorted(p.name for p in (folder / "tables").iterdir()) == sorted(
        f"{table}.{suffix}" for table in counts for suffix in ("csv", "parquet")
    )


def test_values_keep_their_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1]).write(tmp_path / "run")
    parity(capsys, "report", str(folder), "--format", "parquet", "-o", str(tmp_path / "t"))
    measured = pd.read_parquet(tmp_path / "t" / "measurements.parquet")
    assert measured["value"].dtype == measured["bound"].dtype == "float64"
    assert measured["exceeded"].dtype == "bool"
    pairs = pd.read_parquet(tmp_path / "t" / "pairs.parquet")
    worst = measured[measured.exceeded].merge(pairs, on="pair_id")
    assert set(worst["outcome"]) == {"FAIL"}
    assert set(worst["finding_id"]) == {"F-tiny-3c9d"}


@pytest.mark.parametrize("payload", ['=cmd|"/c calc"!A1', "+1", "-1", "@SUM(1)", "\t=1"])
def test_a_spreadsheet_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], payload: str
) -> None:
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    records = tuple(
        replace(r, title=payload, task=payload) if isinstance(r, FindingRecord) else r
        for r in recorded.records
    )
    folder = replace(recorded, records=records).write(tmp_path / "run")
    assert parity(capsys, "report", str(folder), "--format", "csv").code == 0
    told = pd.read_csv(folder / "tables" / "findings.csv")
    assert list(told["title"]) == [f"'{payload}"]


# ------------------------------------------------------------------------------------- redaction

SECRET = "the merger closes on Tuesday, tell no one"
SHORT = "Zürich"
TOKENS = (9001, 9002, 9003, 9004)


def secret_run() -> RecordedRun:
    """A prompt in every place where one can get to."""
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    prompts = [{"text": SECRET}, {"query": SHORT, "document": SECRET}, {"tokens": TOKENS}]
    told = f"RequestError: text={SECRET!r} near {SHORT} has ids {list(TOKENS)}"
    records = []
    for r in recorded.records:
        if r.kind == "case":
            r = replace(r, case={**r.case, "prompts": prompts})
        elif isinstance(r, FindingRecord):
            r = replace(
                r,
                case={**r.case, "prompts": prompts},
                script=f"PROMPTS = {prompts!r}",
                token_texts=(tuple(SECRET.split(" ")),),
                conditions=(told,),
                reproduce=f"parity run --cases <({SECRET})",
                title=f"differs on {SECRET[4:30]}",
            )
        elif isinstance(r, PairRecord):
            r = replace(r, reason=told if r.reason else "", warnings=(told,))
        elif r.kind == "execution":
            r = replace(r, error=told)
        records.append(r)
    records.append(NoticeRecord(text=told))
    return replace(recorded, records=tuple(records))


def leaks(folder: Path, told: str) -> list[str]:
    """Files and streams in which a prompt can be read, in whole or in part."""
    pieces = {SECRET[i : i + 8] for i in range(len(SECRET) - 8)} | {
        SHORT,
        "9001, 9002",
        "9001 9002",
    }
    found = ["streams"] if any(piece in told for piece in pieces) else []
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            if path.suffix == ".parquet":
                text = pd.read_parquet(path).to_json(force_ascii=False)
            found += [path.name] * any(piece in text for piece in pieces)
    return found


def test_redaction_leaves_no_prompt_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = secret_run().write(tmp_path / "run")
    every = ("--format", "html,markdown,junit,csv,parquet", "--annotate", "--baseline", str(folder))
    for redact in (False, True):
        target = tmp_path / f"redacted-{redact}"
        flags = ["--redact"] if redact else []
        answer = parity(capsys, "report", str(folder), "-o", str(target), *every, *flags)
        assert answer.code == 0
        found = leaks(target, answer.out)
        assert len(list(target.rglob("*.*"))) == 13
        if redact:
            assert not found
            assert "[redacted]" in (target / "report.html").read_text()
        else:
            assert {"streams", "report.html", "summary.md", "junit.xml"} <= set(found)


def test_redaction_keeps_what_a_reader_needs(tmp_path: Path) -> None:
    run = load_run(secret_run().write(tmp_path / "run"))
    bare = redacted(run)
    assert [p.outcome for p in bare.pairs] == [p.outcome for p in run.pairs]
    assert [f.signature for f in bare.findings] == [f.signature for f in run.findings]
    assert [f.token_errors for f in bare.findings] == [f.token_errors for f in run.findings]
    assert bare.manifest == run.manifest
    assert "RequestError: text='[redacted]' near [redacted] has ids [" in bare.pairs[-3].warnings[0]


# ---------------------------------------------------------------------------------- command line


def test_several_forms_go_to_a_folder_and_one_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1]).write(tmp_path / "run")
    answer = parity(capsys, "report", str(folder), "--format", "junit,markdown", "--annotate")
    assert answer.code == 0
    assert {"junit.xml", "summary.md"} <= {p.name for p in folder.iterdir()}
    assert answer.out.count("::error title=") == 1
    target = tmp_path / "elsewhere" / "tests.xml"
    assert parity(capsys, "report", str(folder), "--format", "junit", "-o", str(target)).code == 0
    assert target.read_bytes() == (folder / "junit.xml").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--format", "pdf"), "unknown format pdf; valid: html, markdown, junit, csv, parquet"),
        (("--format", ","), "unknown format ','; valid:"),
        (("--rules", "x.toml"), "--rules needs --baseline"),
    ],
)
def test_misuse_is_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    answer = parity(capsys, "report", str(tmp_path), *arguments)
    assert answer.code == 2
    assert told in answer.told


def test_the_same_run_gives_the_same_bytes(loaded: dict[str, Run]) -> None:
    run = loaded["failing"]
    for first, second in itertools.pairwise([(markdown(run), junit(run))] * 2):
        assert first == second == (markdown(run), junit(run))
