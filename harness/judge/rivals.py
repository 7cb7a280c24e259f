"""Rules that others compare outputs by, beside ours: for the record of what each would have said.

None of them decides anything here. Where each comes from stands with it; all of them also ask for
equal shapes and dtypes, and none accepts a NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.judge.metrics import one_minus_cosine
from harness.judge.output import Output, OutputKind, Outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One rule."""

    name: str
    source: str
    accepts: Callable[[OutputKind, Output, Output], bool]


def accepts(rival: Rival, kind: OutputKind, a: Outputs, b: Outputs) -> bool:
    """Whether the rule calls two runs' outputs equal."""
    same = [(x.shape, x.dtype) for x in a] == [(y.shape, y.dtype) for y in b]
    return same and all(rival.accepts(kind, x, y) for x, y in zip(a, b, strict=True))


def _cosine(limit: float) -> Callable[[OutputKind, Output, Output], bool]:
    def rule(kind: OutputKind, a: Output, b: Output) -> bool:
        if kind.vector:
            return bool(np.all(one_minus_cosine(b.rows, a.rows) <= limit))
        # A number has no direction; projects with such a rule compare scores at the same size.
        return bool(np.all(np.abs(b.rows - a.rows) <= limit * np.abs(a.rows)))

    return rule


_CLOSE = {
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}
"""(rtol, atol) that torch.testing.assert_close takes when none is given."""


def _assert_close(kind: OutputKind, a: Output, b: Output) -> bool:  # noqa: ARG001
    rtol, atol = _CLOSE[a.dtype]
    return bool(np.all(np.abs(b.rows - a.rows) <= atol + rtol * np.abs(a.rows)))


def _bitwise(kind: OutputKind, a: Output, b: Output) -> bool:  # noqa: ARG001
    return bool(np.array_equal(a.bits, b.bits)) and bool(np.all(np.isfinite(b.float64)))


RIVALS: tuple[Rival, ...] = (
    Rival(name="cosine 1e-2", source="vLLM's pooling tests", accepts=_cosine(1e-2)),
    Rival(
        name="cosine 1e-3",
        source="vLLM's default for embeddings; text-embeddings-inference's snapshots",
        accepts=_cosine(1e-3),
    ),
    Rival(name="cosine 1e-5", source="SGLang's embedding tests", accepts=_cosine(1e-5)),
    Rival(name="assert_close", source="torch.testing, no tolerance given", accepts=_assert_close),
    Rival(name="bitwise", source="batch-invariance tests", accepts=_bitwise),
)
