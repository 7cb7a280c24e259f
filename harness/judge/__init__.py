"""Judge: whether two executions of a case agree, by the rules and tolerances of one place."""

from __future__ import annotations

from harness.judge.against_oracle import oracle_pair
from harness.judge.bounds import Bound, Bounds, OracleErrors
from harness.judge.calibration import Calibration, Null
from harness.judge.output import Output, OutputKind, Outputs, kind_of
from harness.judge.power import Perturbation, power
from harness.judge.subject import Execution, Subject
from harness.judge.tolerance import (
    BucketKey,
    Tolerance,
    ToleranceError,
    length_bucket,
)
from harness.judge.verdict import judge_pair, pair_id

__all__ = [
    "Bound",
    "Bounds",
    "BucketKey",
    "Calibration",
    "Execution",
    "Null",
    "OracleErrors",
    "Output",
    "OutputKind",
    "Outputs",
    "Perturbation",
    "Subject",
    "Tolerance",
    "ToleranceError",
    "judge_pair",
    "kind_of",
    "length_bucket",
    "oracle_pair",
    "pair_id",
    "power",
]
