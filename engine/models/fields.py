"""The values of a config.json: read with what they must be, refused with the file's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError, UnsupportedModelError
from engine.models.headed import backbone

FULL, SLIDING = "full_attention", "sliding_attention"
"""Kinds of layers, as `layer_types` and `rope_parameters` name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """One config.json. Absent and null are the same."""

    values: Mapping[str, Any]
    file: Path

    @property
    def architecture(self) -> str:
        """First of `architectures`, or the backbone that it puts a head on."""
        return backbone(str((self.values.get("architectures") or [None])[0]))

    @property
    def dtype(self) -> str | None:
        """`dtype` since transformers 5, `torch_dtype` before."""
        dtype = self.values.get("dtype") or self.values.get("torch_dtype")
        return None if dtype is None else str(dtype)

    def size(self, name: str, default: int | None = None) -> int:
        """A positive integer."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise CheckpointError(
                f"{name}={value!r} in {self.file}: expected a positive integer. Repair the file or "
                "download it again"
            )
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A positive number."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise CheckpointError(f"{name}={value!r} in {self.file}: expected a positive number")
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """true or false."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise CheckpointError(f"{name}={value!r} in {self.file}: expected true or false")
        return value

    def choice(self, name: str, accepted: Sequence[str], *, default: str) -> str:
        """One of the names that the engine implements."""
        self.refuse_unless(name, accepted=accepted)
        return str(self.values.get(name) or default)

    def refuse_unless(self, name: str, *, accepted: Sequence[object]) -> None:
        """Refuse a choice that the engine would otherwise silently ignore; absent is accepted."""
        value = self.values.get(name)
        if value is not None and value not in accepted:
            raise UnsupportedModelError(
                f"{name}={value!r} in {self.file}: the engine implements only {list(accepted)}"
            )

    def sliding_layers(self, count: int, otherwise: Callable[[int], bool]) -> tuple[bool, ...]:
        """For each layer, whether it has a window: as `layer_types` says, else `otherwise`."""
        kinds = self.values.get("layer_types")
        if kinds is None:
            return tuple(otherwise(layer) for layer in range(count))
        unknown = [kind for kind in kinds if kind not in (FULL, SLIDING)]
        if unknown:
            raise UnsupportedModelError(
                f"layer_types with {unknown} in {self.file}: the engine implements only "
                f"{[FULL, SLIDING]}"
            )
        if len(kinds) != count:
            raise CheckpointError(
                f"layer_types of {len(kinds)} layers in {self.file}: expected {count}, one for "
                "each layer"
            )
        return tuple(kind == SLIDING for kind in kinds)

    def rope_theta(self, default: float) -> float:
        """Base of the rotary frequencies of a model that has one; scaled kinds are refused."""
        theta: object = self.values.get("rope_theta")
        for name in ("rope_scaling", "rope_parameters"):
            rope = self._rope(name, self.values.get(name))
            theta = rope.get("rope_theta", theta)
        self.refuse_unless("partial_rotary_factor", accepted=(1.0,))
        return self._theta("rope_theta", default if theta is None else theta)

    def rope_theta_of(self, kind: str, name: str, default: float) -> float:
        """Base of one kind of layers: from `rope_parameters` of that kind, or the field `name`."""
        self._rope("rope_scaling", self.values.get("rope_scaling"))
        kinds = self.values.get("rope_parameters") or {}
        if not isinstance(kinds, dict) or not set(kinds) <= {FULL, SLIDING}:
            raise CheckpointError(
                f"rope_parameters={kinds!r} in {self.file}: expected an object with "
                f"{FULL!r} and {SLIDING!r}"
            )
        rope = self._rope(f"rope_parameters.{kind}", kinds.get(kind))
        theta = rope.get("rope_theta", self.values.get(name))
        return self._theta(name, default if theta is None else theta)

    def _theta(self, name: str, theta: object) -> float:
        if not isinstance(theta, int | float) or theta <= 0:
            raise CheckpointError(f"{name}={theta!r} in {self.file}: expected a positive number")
        return float(theta)

    def _rope(self, name: str, rope: object) -> Mapping[str, Any]:
        """An object of rotary parameters; anything but plain rotation is refused."""
        if rope is None:
            return {}
        if not isinstance(rope, dict):
            raise CheckpointError(f"{name}={rope!r} in {self.file}: expected an object or null")
        kind = rope.get("rope_type", rope.get("type", "default"))
        partial = rope.get("partial_rotary_factor", 1.0)
        nested = any(isinstance(value, dict) for value in rope.values())
        if kind != "default" or partial != 1.0 or nested:
            raise UnsupportedModelError(
                f"{name}={rope!r} in {self.file}: the engine implements only rope_type 'default' "
                "over the whole head. Remove the scaling if prompts stay within the trained length"
            )
        return rope
