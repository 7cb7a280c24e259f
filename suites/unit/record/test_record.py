"""Records come back from a file as they went in, whatever text and numbers they hold.

Passes wrongly if a record came back equal because both sides had lost the same thing. Ruled out by
suites/meta/test_suites_can_fail.py: `words-become-numbers`.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import (
    RECORD_TYPES,
    Measurement,
    NoticeRecord,
    PowerRecord,
    Record,
    RecordError,
    RunWriter,
    manifest_from_json,
    read_manifest,
    read_records,
    record_from_json,
    to_json,
)
from suites.unit.reports.fixtures import failing_run, finding
from suites.unit.reports.parts import CHECKPOINTS, manifest

# Every code point, lone surrogates among them: a prompt may hold what no file encoding can.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)


def back(record: Record) -> Record:
    """`record` after a trip through one line of JSON."""
    return record_from_json(json.loads(json.dumps(to_json(record), allow_nan=False)))


def written(folder: Path, *records: Record) -> list[Record]:
    writer = RunWriter(folder, manifest())
    for record in records:
        writer.append(record)
    writer.close()
    return list(read_records(folder))


def example(annotation: Any) -> Any:
    """A value of this type, so that a kind of record that comes later is tested too."""
    plain = {str: "word", int: 3, float: 1.5, bool: True, Any: {"a": [1, None, "nan"]}}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in plain:
        return plain[annotation]
    if origin is tuple:
        return (example(arguments[0]),)
    if origin is UnionType:
        return example(next(a for a in arguments if a is not NoneType))
    if origin is not None:
        return {"key": example(arguments[1])}
    if issubclass(annotation, StrEnum):
        return next(iter(annotation))
    hints = get_type_hints(annotation)
    return annotation(**{f.name: example(hints[f.name]) for f in fields(annotation)})


@pytest.mark.parametrize("kind", sorted(RECORD_TYPES))
def test_every_kind_comes_back_equal(kind: str) -> None:
    record = example(RECORD_TYPES[kind])
    assert back(record) == record


def test_a_whole_run_comes_back_equal() -> None:
    run = failing_run(num_cases=2)
    assert [back(record) for record in run.records] == list(run.records)
    assert manifest_from_json(json.loads(json.dumps(to_json(run.manifest)))) == run.manifest


@given(text=ANY_TEXT, number=st.floats(allow_nan=False))
def test_any_text_and_number_come_back(text: str, number: float) -> None:
    movement = Measurement(metric=text, value=number, unit=text)
    power = PowerRecord(case_id=text, checkpoint=text, movements=(movement,), blind=False)
    assert back(power) == power


@pytest.mark.parametrize("text", ["half \ud800 a pair", "\udfff", "whole \U0001f600", "\x00\x1b"])
def test_a_file_holds_any_text(tmp_path: Path, text: str) -> None:
    notice = NoticeRecord(text=text)
    assert written(tmp_path, notice, notice) == [notice, notice]
    assert len((tmp_path / "records.jsonl").read_text(encoding="utf-8").split("\n")) == 3


def test_words_that_look_like_numbers_stay_words() -> None:
    record = replace(finding(CHECKPOINTS[0], ()), conditions=("nan", "inf"), masked_by=("-inf",))
    assert back(record) == record
    assert all(isinstance(text, str) for text in (*record.conditions, *record.masked_by))


def test_numbers_that_are_none_stay_numbers() -> None:
    record = replace(
        finding(CHECKPOINTS[0], ()), worst=math.inf, token_errors=((0.0, -math.inf, math.nan),)
    )
    found = back(record)
    assert found.worst == math.inf
    assert found.token_errors[0][1] == -math.inf
    assert math.isnan(found.token_errors[0][2])


def test_a_whole_number_is_read_as_the_number_it_stands_for() -> None:
    data = to_json(Measurement(metric="m", value=3.0))
    record = record_from_json(
        {"kind": "power", "case_id": "c", "checkpoint": "k", "blind": False, "movements": [data]}
        | {"movements": [{**data, "value": 3}]}
    )
    assert isinstance(record, PowerRecord)
    assert isinstance(record.movements[0].value, float)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"blind": None, "wrong": 1}, r"PowerRecord has no field \['wrong'\]; known fields"),
        ({"kind": "pears"}, "unknown record kind 'pears'; known:"),
        ({"movements": [{"metric": "m", "value": "much"}]}, "Measurement.value='much'"),
        ({"movements": "all"}, "PowerRecord.movements='all': a list was expected"),
        ({"movements": [7]}, "Measurement is a JSON object, got int"),
    ],
)
def test_what_cannot_be_read_is_named(change: dict[str, object], told: str) -> None:
    record = PowerRecord(case_id="c", checkpoint="k", movements=(), blind=False)
    with pytest.raises(RecordError, match=told):
        record_from_json({**to_json(record), **change})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(RecordError, match=r"PowerRecord lacks \['blind', 'movements'\]"):
        record_from_json({"kind": "power", "case_id": "c", "checkpoint": "k"})
    with pytest.raises(RecordError, match="a record is a JSON object, got list"):
        record_from_json([])


def test_another_format_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 0}))
    with pytest.raises(RecordError, match="format_version=0; this version reads 1"):
        read_manifest(tmp_path)
