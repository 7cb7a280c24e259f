"""The catalogue of faults: complete entries, importable plug-ins, axes that exist.

Passes wrongly if a plant that is taken out stayed in. Ruled out by
suites/meta/test_suites_can_fail.py: `plants-stay-in`.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from engine.plugins import load_plugin
from harness.axes import ALL_AXES, AXES
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.faults import FAULTS
from harness.faults.base import Fault, FaultClass, replace_method
from harness.trials.masks import MASKS

SOURCE = re.compile(r"[\w.-]+#\d+")


def test_every_class_has_faults_and_there_are_enough() -> None:
    counts = Counter(fault.kind for fault in FAULTS.values())
    assert set(counts) == set(FaultClass)
    assert sum(counts.values()) >= 45


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_an_entry_says_all_and_can_be_loaded(fault: Fault) -> None:
    assert load_plugin(fault.plugin) is fault
    assert fault.checkpoint in CHECKPOINTS
    assert all(SOURCE.fullmatch(source) for source in fault.sources)
    for values in fault.exposed_by:
        for switch in values:
            name, _, value = switch.partition("=")
            assert name in (fault.axes or AXES)
            assert ALL_AXES[name].check(value) != ALL_AXES[name].baseline
    assert set(fault.masked_by) <= set(MASKS)
    assert all((fault.mechanism, fault.conditions, fault.magnitude))


class Owner:
    def method(self) -> str:
        return "class"


def test_replacing_undoes_in_any_nesting() -> None:
    owner = Owner()
    first = replace_method(owner, "method", lambda: "first")
    second = replace_method(owner, "method", lambda: "second")
    assert owner.method() == "second"
    second()
    assert owner.method() == "first"
    first()
    assert owner.method() == "class"
    assert not vars(owner)
