"""Differences that are no defects, one file for each place they come from; this is their table."""

from __future__ import annotations

from collections.abc import Mapping

from harness.controls import answers, attention, compiling, elementwise, products, rounding
from harness.controls.base import Control

CONTROLS: Mapping[str, Control] = {
    found.name: found
    for module in (attention, products, elementwise, answers, compiling, rounding)
    for found in vars(module).values()
    if isinstance(found, Control)
}
