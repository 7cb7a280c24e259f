"""What can go wrong with the reference.

OracleError
+-- InvalidPrompt       token ids, type ids or pooling the model cannot take
+-- ImpreciseModel      part of the model computes in float32 although float64 was asked for
+-- IncompleteWeights   the checkpoint lacks tensors the model needs
"""

from __future__ import annotations


class OracleError(Exception):
    """Root of every error raised by `harness.oracle`."""


class InvalidPrompt(OracleError):  # noqa: N818 - reads as the condition, like its siblings
    """The model cannot be asked this."""


class ImpreciseModel(OracleError):  # noqa: N818
    """The model is not the float64 reference it was asked to be."""


class IncompleteWeights(OracleError):  # noqa: N818
    """Some weights would have been left at random values."""
