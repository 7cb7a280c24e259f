"""Making a Hugging Face model compute in float64 throughout, and proving that it does.

Two places of the released models are float32 whatever the weights are. RMS norms hard-code it,
which is an accident of implementation: they are replaced. Rotary angles hard-code it too, and there
it is part of the model's definition (float64 angles move the last token by 1e-5 at 3,000 tokens):
they stay. torch's LayerNorm already computes in the dtype it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from harness.oracle.errors import ImpreciseModel


class TrueDtypeRMSNorm(nn.Module):
    """`weight * x / sqrt(mean(x**2) + epsilon)` in the dtype of `x` (Zhang and Sennrich, 2019)."""

    def __init__(self, weight: nn.Parameter, epsilon: float) -> None:
        super().__init__()
        self.weight = weight
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.epsilon))


def replace_norms(model: nn.Module) -> int:
    """Swap every RMS norm of the Llama kind for `TrueDtypeRMSNorm`; returns how many.

    A norm of another kind (Gemma's, say, scales by 1 + weight) is left alone: `require_float64`
    then refuses the model instead of this function guessing a formula.
    """
    replaced = 0
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if type(child).__name__.endswith("RMSNorm") and hasattr(child, "variance_epsilon"):
                weight, epsilon = child.weight, child.variance_epsilon
                if not isinstance(weight, nn.Parameter) or not isinstance(epsilon, float):
                    raise ImpreciseModel(
                        f"expected {type(child).__name__} with a weight and a float epsilon, got "
                        f"weight={type(weight).__name__} epsilon={epsilon!r}"
                    )
                setattr(parent, name, TrueDtypeRMSNorm(weight, epsilon))
                replaced += 1
    return replaced


def require_float64(model: nn.Module, forward: Callable[[], object]) -> None:
    """Run `forward` once and raise ImpreciseModel if anything but a rotary table is not float64.

    Looks at the result of every operation torch runs, so it needs no list of suspect modules.
    """
    watch = _FloatWatch()
    handles = []
    for module in model.modules():
        if "RotaryEmbedding" in type(module).__name__:
            handles.append(module.register_forward_pre_hook(watch.pause))
            handles.append(module.register_forward_hook(watch.resume))
    try:
        with watch:
            forward()
    finally:
        for handle in handles:
            handle.remove()
    if watch.seen:
        raise ImpreciseModel(
            f"expected float64 in every operation outside rotary tables, got {sorted(watch.seen)}: "
            "teach harness.oracle.precision how this model computes them"
        )


class _FloatWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations that return floats of fewer than 64 bits while not paused."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: set[str] = set()
        self._paused = False

    def pause(self, *_hook_arguments: object) -> None:
        self._paused = True

    def resume(self, *_hook_arguments: object) -> None:
        self._paused = False

    def __torch_dispatch__(
        self,
        func: Any,  # an OpOverload, which torch does not type
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        # A kernel may return several tensors (attention also returns row statistics).
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            imprecise = isinstance(tensor, torch.Tensor) and tensor.dtype in _NARROW
            if imprecise and not self._paused:
                self.seen.add(f"{func} -> {str(tensor.dtype).removeprefix('torch.')}")
        return result


_NARROW = (torch.float32, torch.bfloat16, torch.float16)
