"""Attribution: from failing pairs to findings, each with what it takes to fail and what hides it.

`find` groups the failures of a judged checkpoint by signature, shrinks one case of each, runs the
whole lattice on the shrunk case and reports every minimal failing set of axis values. `replay` runs
a finding's truth table again. Neither knows what was planted (law 8).
"""

from __future__ import annotations

from harness.attribution.find import find
from harness.attribution.replay import Replayed, replay
from harness.attribution.signature import FailureKind, Signature

__all__ = ["FailureKind", "Replayed", "Signature", "find", "replay"]
