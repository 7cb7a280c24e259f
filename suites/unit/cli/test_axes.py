"""`parity axes` tells what the tables hold, to people and to programs.

Passes wrongly if what is printed was held to itself and not to the tables. Ruled out by
suites/meta/test_suites_can_fail.py: `an-axis-is-not-listed`.
"""

from __future__ import annotations

import json

import pytest

from harness.axes import ALL_AXES
from harness.campaign.profile import PROFILES
from harness.cli import main


def test_every_axis_profile_and_setting_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["axes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for axis in ALL_AXES.values():
        values = ", ".join(sorted(axis.values, key=lambda value: value != axis.baseline))
        row = next(line for line in lines if line.split()[:1] == [axis.name])
        assert values in row
        assert f" {axis.tier} " in row
    for profile in PROFILES.values():
        assert f"{profile.name}: {profile.meaning}" in lines
        for plan in profile.checkpoints:
            row = [profile.name, plan.name, plan.cases, plan.chunk, plan.max_model_len]
            assert [str(value) for value in row] in [line.split()[:5] for line in lines]
        for chosen in profile.settings:
            assert any(
                profile.name in line and line.split()[-2:] == list(chosen.values())
                for line in lines
            )


def test_a_program_reads_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["axes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [axis["name"] for axis in document["axes"]] == list(ALL_AXES)
    assert {axis["name"]: axis["baseline"] for axis in document["axes"]} == {
        axis.name: axis.baseline for axis in ALL_AXES.values()
    }
    assert [profile["name"] for profile in document["profiles"]] == list(PROFILES)
    smoke = document["profiles"][0]
    assert smoke["checkpoints"][0]["cases"] == PROFILES["smoke"].checkpoints[0].cases
    assert smoke["settings"] == [dict(chosen) for chosen in PROFILES["smoke"].settings]
