"""Logits of one class or several, calibrated, and their activation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from engine.layers.linear import MIN_ROWS, linear
from engine.pooling.heads.layers import DenseSpec, Layer, LayerSpec, chained, identity
from engine.pooling.weights import HeadWeights
from engine.request import PoolingParams

SCORE_ACTIVATIONS: Final = ("identity", "sigmoid", "softmax")
"""What a request or a checkpoint may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """(logit - bias) * scale, before the activation (Platt scaling; vLLM's `logit_mean` is `bias`
    and its `logit_sigma` is 1 / `scale`)."""

    bias: float = 0.0
    scale: float = 1.0

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        if self.bias:
            logits = logits - self.bias
        return logits * self.scale if self.scale != 1.0 else logits


UNCALIBRATED: Final = Calibration()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierSpec:
    """`output`: the last product; `layers`: what stands before it. `activation` None: sigmoid for
    one class, softmax for several."""

    output: DenseSpec
    layers: tuple[LayerSpec, ...] = ()
    activation: str | None = None
    calibration: Calibration = UNCALIBRATED

    @property
    def width(self) -> int:
        return self.output.outputs

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset({"activation"})

    def build(self, weights: HeadWeights) -> ClassifierHead:
        output, shape = self.output, (self.output.outputs, self.output.inputs)
        return ClassifierHead(
            weights.read(output.weight, shape, subfolder=output.subfolder, file=output.file),
            None if output.bias is None else weights.read(output.bias, shape[:1], file=output.file),
            layers=chained(self.layers, weights) if self.layers else identity,
            activation=self.activation,
            calibration=self.calibration,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LmRowsSpec:
    """A classifier over rows of the LM head. `ids`: a class each, or with `is_difference` yes, no.

    Two rows and softmax are a process reward's good and bad token (arXiv:2312.08935).
    """

    ids: tuple[int, ...]
    is_difference: bool = False
    activation: str | None = None
    calibration: Calibration = UNCALIBRATED

    @property
    def width(self) -> int:
        return 1 if self.is_difference else len(self.ids)

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset({"activation"})

    def build(self, weights: HeadWeights) -> ClassifierHead:
        rows = weights.lm_head_rows(list(self.ids))
        weight = (
            difference(rows[0], rows[1])
            if self.is_difference
            else rows.to(torch.promote_types(rows.dtype, torch.float32))
        )
        return ClassifierHead(weight, activation=self.activation, calibration=self.calibration)


def difference(yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    """Weight [1, D] of a reranker from two rows [D] of the LM head: (W[yes] - W[no]) . h.

    sigmoid of that logit is softmax([no, yes])[yes] (Qwen3-Reranker's score). The difference is
    taken in float32 (float64 for float64 rows): in half precision it would cancel.
    """
    wide = torch.promote_types(yes.dtype, torch.float32)
    return (yes.to(wide) - no.to(wide)).unsqueeze(0)


class ClassifierHead:
    """logits = layers(rows) W^T + b, calibrated, then the activation.

    Computed in the weight's dtype. The product is padded to at least `min_rows` rows, so that a
    row's bits do not depend on how many there are.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        min_rows: int = MIN_ROWS,
        layers: Layer = identity,
        activation: str | None = None,
        calibration: Calibration = UNCALIBRATED,
    ) -> None:
        """`weight` [C, D]; `bias` [C] or None; `activation` as in `ClassifierSpec`."""
        self._weight = weight
        self._bias = bias
        self._min_rows = min_rows
        self._layers = layers
        self._activation = activation
        self._calibration = calibration

    @property
    def num_classes(self) -> int:
        return self._weight.shape[0]

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        rows = self._layers(rows).to(self._weight.dtype)
        logits = linear(rows, self._weight, self._bias, min_rows=self._min_rows)
        logits = self._calibration(logits)
        match self._chosen(params.activation):
            case "identity":
                return logits
            case "sigmoid":
                return torch.sigmoid(logits)
            case _:
                return torch.softmax(logits, dim=-1)

    def _chosen(self, asked: bool | str | None) -> str:  # noqa: FBT001 - a field's own type
        """True asks for the activation by number of classes where the model has none of its own."""
        if isinstance(asked, str):
            return asked
        if asked is False:
            return "identity"
        own = self._activation
        if own is None or (asked is True and own == "identity"):
            return "sigmoid" if self.num_classes == 1 else "softmax"
        return own
