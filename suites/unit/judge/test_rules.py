"""Tolerances of a user's own: which rules an entry means, and every file that is refused.

Passes wrongly if an entry changed every rule, or none. Ruled out by
`test_an_entry_changes_what_it_selects_and_nothing_else`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness.judge.output import OutputKind
from harness.judge.rules import Rules, read_rules
from harness.judge.tolerance import (
    EPSILON,
    ORACLE_CAP,
    TABLE,
    BucketKey,
    ToleranceError,
)
from harness.record import Tier

WHY = 'why = "measured"\n'


def read(tmp_path: Path, text: str, name: str = "own.toml") -> Rules:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_rules(path)


def test_a_file_that_only_says_why_changes_nothing(tmp_path: Path) -> None:
    rules = read(tmp_path, WHY)
    assert rules == Rules()
    assert read(tmp_path, '{"why": "measured"}', "own.json") == rules
    assert read(tmp_path, WHY + "thresholds = [1, 0.5]").thresholds == (1.0, 0.5)


@pytest.mark.parametrize(
    ("entry", "selected"),
    [
        ({"floor": 0.5}, {}),
        ({"k": 7, "floor": 0.5, "tier": "kernel"}, {"tier": "kernel"}),
        ({"null_factor": 9.0, "dtype": "float32"}, {"dtype": "float32"}),
        ({"floor": 0.5, "kind": "score", "bucket": "1-32"}, {"kind": "score", "bucket": "1-32"}),
    ],
)
def test_an_entry_changes_what_it_selects_and_nothing_else(
    tmp_path: Path, entry: dict[str, object], selected: dict[str, str]
) -> None:
    own = {"why": " measured ", "tolerance": [entry]}
    rules = read(tmp_path, json.dumps(own), "own.json")
    changed = 0
    for at, rule in TABLE.items():
        tier, dtype, kind, bucket = at
        place = {"tier": str(tier), "dtype": dtype, "kind": str(kind), "bucket": bucket}
        hit = tier is not Tier.EXACT and all(place[k] == v for k, v in selected.items())
        now = rules.table[at]
        assert (now != rule) is hit, at
        changed += hit
        if hit:
            assert now.why == "measured"
            for name in ("floor", "k", "null_factor"):
                assert getattr(now, name) == entry.get(name, getattr(rule, name))
    assert 0 < changed < len(TABLE)
    assert rules.caps == ORACLE_CAP


def test_a_cap_changes_for_its_dtype_and_kind(tmp_path: Path) -> None:
    rules = read(tmp_path, WHY + '[[cap]]\ndtype = "float32"\nkind = "score"\nfloor = 0.25\n')
    for at, cap in ORACLE_CAP.items():
        assert (rules.caps[at] != cap) is (at == ("float32", OutputKind.SCORE)), at
    assert rules.cap("float32", OutputKind.SCORE).floor == 0.25
    assert rules.table == TABLE
    every = read(tmp_path, WHY + "[[cap]]\nk = 64\n")
    assert {cap.k for cap in every.caps.values()} == {64}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = ", "Invalid value"),
        ('floor = 1\nbound = 2\nwhy = "x"', "unknown key bound, floor; valid: why, thresholds"),
        ("", "need `why`"),
        ('why = "  "', "need `why`"),
        (WHY + "thresholds = 0.5", "thresholds=0.5 must be a list of numbers"),
        (WHY + "thresholds = [0.5, true]", "must be a list of numbers"),
        (WHY + 'thresholds = [0.5, "1"]', "must be a list of numbers"),
        (WHY + "tolerance = 3", "tolerance must be a list of tables, got int"),
        (WHY + "[cap]\nk = 2", "cap must be a list of tables, got dict"),
        (WHY + "tolerance = [3]", "an entry is a table, got 3"),
        (WHY + "[[tolerance]]\nflor = 1\nk = 2", "unknown key flor in an entry; selectors: tier"),
        (WHY + '[[cap]]\ntier = "kernel"\nk = 2', "unknown key tier in an entry; selectors: dtype"),
        (WHY + "[[cap]]\nnull_factor = 2", "unknown key null_factor in an entry"),
        (WHY + '[[tolerance]]\ntier = "exact"\nk = 2', "tier='exact' is unknown; valid: reordered"),
        (WHY + '[[tolerance]]\ntier = "kernel"', "an entry changes nothing; give one of floor, k"),
        (WHY + "[[tolerance]]\nk = true", "k=True is not a number"),
        (WHY + '[[tolerance]]\nfloor = "1"', "floor='1' is not a number"),
        (WHY + "[[tolerance]]\nk = 0.5", "expected k >= 1"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ToleranceError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'own.toml'}: ")
    assert told in str(caught.value)


def test_other_ways_to_be_no_table_are_told_too(tmp_path: Path) -> None:
    with pytest.raises(ToleranceError, match=r"own\.json: expected a table of why"):
        read(tmp_path, "[1]", "own.json")
    with pytest.raises(ToleranceError, match=r"own\.json: "):
        read(tmp_path, "{", "own.json")
    with pytest.raises(ToleranceError, match=r"missing\.toml: "):
        read_rules(tmp_path / "missing.toml")


def test_a_raised_bound_is_never_a_lower_one() -> None:
    key = BucketKey("sample", "float32", OutputKind.SCORE, "1-32")
    floor = Rules().tolerance(Tier.KERNEL, key).floor
    assert Rules().with_bound(Tier.KERNEL, key, floor / 2) == Rules()
    raised = Rules().with_bound(Tier.KERNEL, key, 2 * floor)
    assert raised.tolerance(Tier.KERNEL, key).floor == 2 * floor
    assert raised.tolerance(Tier.REORDERED, key) == Rules().tolerance(Tier.REORDERED, key)
    cap = Rules().cap("float32", OutputKind.SCORE).floor
    assert Rules().with_cap("float32", OutputKind.SCORE, cap / 2) == Rules()
    assert Rules().with_cap("float32", OutputKind.SCORE, 2 * cap).caps != ORACLE_CAP


def test_epsilon_is_the_step_after_one() -> None:
    for dtype in ("float64", "float32", "float16"):
        assert EPSILON[dtype] == np.finfo(dtype).eps
    one, after = (
        np.array([bits << 16], dtype=np.uint32).view(np.float32) for bits in (0x3F80, 0x3F81)
    )
    assert EPSILON["bfloat16"] == float(after[0] - one[0])
