"""Making a Hugging Face model compute in float64 throughout, and proving that it does.

Some places of the released models are float32 whatever the weights are. RMS norms hard-code it,
and ModernBERT's rotation of q and k, which are accidents of implementation: they are replaced.
Rotary angles hard-code it too, and there it is part of the model's definition (float64 angles move
the last token by 1e-5 at 3,000 tokens): they stay. torch's LayerNorm already computes in the dtype
it is given.
"""

from __future__ import annotations

import types
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
    """Swap every RMS norm of the Llama and Gemma 3 kinds for `TrueDtypeRMSNorm`; returns how many.

    A norm of another kind is left alone: `require_float64` then refuses the model instead of this
    function guessing a formula.
    """
    replaced = 0
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            kind = type(child).__name__
            gemma: Any = child
            if kind == "Gemma3RMSNorm":  # stores what is added to one
                offset = nn.Parameter(1.0 + gemma.weight.detach(), requires_grad=False)
                setattr(parent, name, TrueDtypeRMSNorm(offset, gemma.eps))
                replaced += 1
            elif kind.endswith("RMSNorm") and hasattr(child, "variance_epsilon"):
                weight, epsilon = child.weight, child.variance_epsilon
                if not isinstance(weight, nn.Parameter) or not isinstance(epsilon, float):
                    raise ImpreciseModel(
                        f"expected {kind} with a weight and a float epsilon, got "
                        f"weight={type(weight).__name__} epsilon={epsilon!r}"
                    )
                setattr(parent, name, TrueDtypeRMSNorm(weight, epsilon))
                replaced += 1
    return replaced


def rotate_in_true_dtype(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    unsqueeze_dim: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotary embedding (arXiv:2104.09864) of q and k [..., d] in their own dtype."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)

    def turned(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    return turned(q), turned(k)


def replace_rotations(model: nn.Module) -> int:
    """Give each module that turns q and k in float32 its own `forward` that does not.

    Only functions seen to lose digits are replaced; returns how many modules had one. The released
    module's globals stay as they are: models of other dtypes use them.
    """
    replaced = 0
    for module in model.modules():
        forward = type(module).forward
        names = getattr(forward, "__globals__", {})
        rotate = names.get(_ROTATE)
        if _ROTATE in getattr(forward, "__code__", _NOTHING).co_names and _loses_digits(rotate):
            exact = types.FunctionType(
                forward.__code__,
                {**names, _ROTATE: rotate_in_true_dtype},
                forward.__name__,
                forward.__defaults__,
                forward.__closure__,
            )
            exact.__kwdefaults__ = forward.__kwdefaults__
            module.forward = types.MethodType(exact, module)
            replaced += 1
    return replaced


_ROTATE = "apply_rotary_pos_emb"
_NOTHING = (lambda: None).__code__


def _loses_digits(rotate: Any) -> bool:
    third = torch.full((1, 1, 1, 2), 1 / 3, dtype=torch.float64)
    one, zero = torch.ones_like(third[0]), torch.zeros_like(third[0])
    return not torch.equal(rotate(third, third, one, zero)[0], third)


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
