"""Every tolerance of the project, with the reason for it (law 2).

Two bounds can hold a pair:

* the *null*: 3 x the 99.9th percentile of the distance between two known-good runs, measured and
  stored (`harness.judge.calibration`) per checkpoint, dtype, output kind and length, and never more
  than the oracle bound;
* the *oracle bound*: k x the 99.9th percentile of the baseline's own error against float64 in this
  run, per checkpoint, dtype, output kind and length, and never below a floor. Never the case's own
  error: a baseline that happens to be lucky on one case would condemn every honest variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.judge.output import OutputKind
from harness.record import Tier

EPSILON: Mapping[str, float] = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
"""Distance from 1 to the next number of each dtype."""

BUCKETS: tuple[tuple[str, int], ...] = (("1-32", 32), ("33-128", 128), ("129-512", 512))
"""Length classes by their largest prompt, in tokens; longer prompts are `LONGEST`."""
LONGEST = "513+"
BUCKET_NAMES = (*(name for name, _ in BUCKETS), LONGEST)

QUANTILE = 0.999
MIN_COUNT = 1000
"""Below 1 / (1 - QUANTILE) samples the percentile is only the largest value seen."""


def length_bucket(length: int) -> str:
    """The length class of a prompt of so many tokens."""
    return next((name for name, largest in BUCKETS if length <= largest), LONGEST)


class BucketKey(NamedTuple):
    """Errors are pooled, and tolerances given, per bucket."""

    checkpoint: str
    dtype: str
    """The dtype the model computes in, which its head may widen."""
    kind: OutputKind
    bucket: str


class ToleranceError(ValueError):
    """A tolerance or a calibration that does not say where it comes from, or is out of range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The rule of one (tier, dtype, kind, length bucket)."""

    k: float
    """Multiplies the percentile of the baseline's oracle errors."""
    floor: float
    """Least oracle bound, in the unit of the kind's error."""
    null_factor: float
    why: str

    def __post_init__(self) -> None:
        if not self.why.strip():
            raise ToleranceError("a tolerance needs `why`: what was measured or derived, and how")
        if not (self.k >= 1 and self.floor >= 0 and self.null_factor >= 1):
            raise ToleranceError(
                f"expected k >= 1, floor >= 0, null_factor >= 1; got k={self.k}, "
                f"floor={self.floor}, null_factor={self.null_factor}"
            )


_HALF = ("float16", "bfloat16")


_LOGITS = (OutputKind.LOGIT, OutputKind.TOKEN_LOGIT)


def _tolerance(tier: Tier, dtype: str, kind: OutputKind) -> Tolerance:
    if tier is Tier.EXACT:
        return Tolerance(
            k=1.0,
            floor=0.0,
            null_factor=1.0,
            why="the same operations on the same shapes: 0 ulp, whatever the values",
        )
    epsilon = EPSILON[dtype]
    if dtype in _HALF:
        return Tolerance(
            k=3.0,
            floor=2 * epsilon,
            null_factor=3.0,
            why=(
                "k=3 is what half precision gets from PyTorch's accuracy check and "
                "FlashAttention's tests; floor 2 eps: products accumulate in float32 and are "
                "rounded once to half (eps/2), and a residual stream carries a few such roundings"
            ),
        )
    cancels = kind in _LOGITS
    return Tolerance(
        k=2.0,
        floor=16 * epsilon * (8 if cancels else 1),
        null_factor=3.0,
        why=(
            "k=2 is what float32 gets from PyTorch's accuracy check and FlashAttention's tests; "
            "floor 16 eps = 32 unit roundoffs, the expected error of one reduction over 1,024 "
            "terms (Higham and Mary 2019); plain Hugging Face float32 on the 4-layer generated "
            "checkpoints measured 8 eps (median) to 33 eps (largest of 60) on the pooled row"
            + (
                "; 8 times that where two logits cancel: it measured up to 210 eps"
                if cancels
                else ""
            )
        ),
    )


TABLE: Mapping[tuple[Tier, str, OutputKind, str], Tolerance] = {
    (tier, dtype, kind, bucket): _tolerance(tier, dtype, kind)
    for tier in Tier
    for dtype in EPSILON
    for kind in OutputKind
    for bucket in BUCKET_NAMES
}

NORM: Mapping[str, Tolerance] = {
    dtype: Tolerance(
        k=1.0,
        floor=8 * epsilon if dtype in ("float32", "float64") else epsilon,
        null_factor=1.0,
        why=(
            "|norm - 1| of a normalised row: 2,000 random rows of each of five widths from 64 to "
            "4,096 measured at most 0.96 eps in float32, 0.18 eps rounded to half (seed 0)"
        ),
    )
    for dtype, epsilon in EPSILON.items()
}
"""For normalised outputs, by the dtype they are returned in."""

_CAPS: Mapping[str, float] = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 2.3e-2,
    "bfloat16": 1.72e-1,
}
_CAP_WHY = (
    "the baseline is at most twice as far from float64 as a trusted twin and never beyond this "
    "cap: float32 1e-5 relative is the project's acceptance bar; half precision is held to twice "
    "what Hugging Face's own measured at most, 0.0112 in float16 and 0.0855 in bfloat16 (four "
    "generated decoders, 60 prompts of 1 to 119 tokens each, seed 0: pytest -m bench "
    "suites/bench/test_half_precision.py)"
)
_TOKENS_WHY = "; twice that for the worst of many rows (measured 1.5 to 2.3 x the pooled row's)"
_SCORE_WHY = "; a score is held to the acceptance bar's 2e-5 absolute in float32"
_LOGIT_WHY = (
    "; 8 times that for a logit: the sigmoid's slope is at most 1/4, so 8e-5 is what a score "
    "within 2e-5 allows, and a difference of two logits cancels (plain Hugging Face float32 "
    "measured 2.5e-5 on the generated checkpoints)"
)

ORACLE_CAP: Mapping[tuple[str, OutputKind], Tolerance] = {
    (dtype, kind): Tolerance(
        k=2.0,
        floor=cap * factor,
        null_factor=1.0,
        why=_CAP_WHY + more,
    )
    for dtype, cap in _CAPS.items()
    for kind, factor, more in (
        (OutputKind.EMBEDDING, 1, ""),
        (OutputKind.LOGIT, 8, _LOGIT_WHY),
        (OutputKind.SCORE, 2, _SCORE_WHY),
        (OutputKind.TOKEN_EMBEDDING, 2, _TOKENS_WHY),
        (OutputKind.TOKEN_MATRIX, 1, "; the whole matrix is never further off than its worst row"),
        (OutputKind.TOKEN_LOGIT, 8, _LOGIT_WHY),
        (OutputKind.TOKEN_SCORE, 2, _TOKENS_WHY),
    )
}
"""How far the baseline itself may be from float64."""

TWIN_LIFT = 8.0
"""A float32 twin may lift the cap at most this far: a broken twin excuses nothing. The worst case
seen needs 6.9: of the SmolLM2 token rows of 93 prompts one is 1.37e-4 off (cap 2e-5), and 1.64e-4
in Hugging Face's own float32 (case 3c725f8ed18b of `parity run --profile nightly --model smollm2
--seed 0`); the twin's second worst is 4.2e-5 and its tenth 6.0e-6."""

POWER_FACTOR = 100.0
"""An output has power when it moves by at least this many reordered tolerances."""
HALF_POWER_FACTOR = 2.0
"""The same in half precision. Its bounds start at 2 eps = 0.016 in bfloat16, and two unit vectors
are at most 2 apart: a hundred bounds are out of anything's reach. An output that moves by two
bounds shows an error of one."""


def power_factor(dtype: str) -> float:
    """How many reordered tolerances an output of this dtype has to move by."""
    return HALF_POWER_FACTOR if dtype in _HALF else POWER_FACTOR
