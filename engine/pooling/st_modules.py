"""sentence-transformers' modules on disk: modules.json and the folder of each module."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.errors import CheckpointError
from engine.jsonfile import read_json_object
from engine.pooling.heads.layers import DenseSpec

_FLAGS: Final = {
    "pooling_mode_cls_token": "CLS",
    "pooling_mode_max_tokens": "MAX",
    "pooling_mode_mean_tokens": "MEAN",
    "pooling_mode_mean_sqrt_len_tokens": "MEAN_SQRT",
    "pooling_mode_weightedmean_tokens": "WEIGHTED_MEAN",
    "pooling_mode_lasttoken": "LAST",
}
"""Flags of 1_Pooling/config.json, in the order in which several are joined."""
_MODES: Final = {
    "cls": "CLS",
    "max": "MAX",
    "mean": "MEAN",
    "mean_sqrt_len_tokens": "MEAN_SQRT",
    "weightedmean": "WEIGHTED_MEAN",
    "lasttoken": "LAST",
}
"""The same since version 5: `pooling_mode` is one of these or a list, joined in its order."""
ACTIVATION_CLASSES: Final = {
    "GELU": "gelu",
    "Identity": "identity",
    "ReLU": "relu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "Tanh": "tanh",
}
"""torch.nn's classes by name -> our names."""
_ORDER: Final = ("Transformer", "Pooling", "Dense", "Normalize")
_SPARSE: Final = ("MLMTransformer", "SpladePooling")
_PUBLISHERS: Final = ("sentence_transformers", "pylate")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceModules:
    """What the modules say. `methods` None: no Pooling module, so every token has a vector."""

    methods: tuple[str, ...] | None = None
    include_prompt: bool = True
    layers: tuple[DenseSpec, ...] = ()
    normalize: bool = False
    is_splade: bool = False
    twice: bool = False
    """SPLADE's activation takes log1p twice."""


def read_modules(folder: Path) -> SentenceModules | None:
    """None when the folder has no modules.json.

    Raises CheckpointError for a module, an order or an option that the engine has not got.
    """
    file = folder / "modules.json"
    if not file.exists():
        return None
    modules = _listed(file)
    kinds = [_kind(file, type_name) for type_name, _ in modules]
    if set(kinds) <= set(_SPARSE):
        return _splade(file, kinds, folder / modules[-1][1] / "config.json")
    ranks = [_ORDER.index(kind) if kind in _ORDER else -1 for kind in kinds]
    if -1 in ranks or ranks != sorted(ranks) or ranks[:1] != [0] or kinds.count("Pooling") > 1:
        raise CheckpointError(
            f"{file} chains {kinds}: expected Transformer, at most one Pooling, any Dense, then "
            f"Normalize; or {list(_SPARSE)}"
        )
    found = SentenceModules(
        layers=tuple(_dense(folder, p) for k, (_, p) in zip(kinds, modules, strict=True)
                     if k == "Dense"),
        normalize="Normalize" in kinds,
    )  # fmt: skip
    for kind, (_, path) in zip(kinds, modules, strict=True):
        if kind == "Pooling":
            methods, include_prompt = read_pooling_module(folder / path / "config.json")
            return SentenceModules(
                methods=methods,
                include_prompt=include_prompt,
                layers=found.layers,
                normalize=found.normalize,
            )
    return found


def read_pooling_module(file: Path) -> tuple[tuple[str, ...], bool]:
    """Methods of a Pooling module's config.json, and whether an instruction is pooled too."""
    data = read_json_object(file)
    named = data.get("pooling_mode")
    modes = [named] if isinstance(named, str) else named
    if modes is None:
        known: Mapping[str, str] = _FLAGS
        modes = [flag for flag in _FLAGS if data.get(flag)]
        modes += [
            f for f, on in data.items() if f.startswith("pooling_mode_") and on and f not in _FLAGS
        ]
        modes = modes or ["pooling_mode_mean_tokens"]  # what sentence-transformers takes
    else:
        known = _MODES
    if not isinstance(modes, list) or not modes or any(mode not in known for mode in modes):
        raise CheckpointError(
            f"{file} asks for pooling {modes}: expected some of {sorted(known)}. Set `pooling` in "
            "the configuration to override it"
        )
    include = data.get("include_prompt", True)
    if not isinstance(include, bool):
        raise CheckpointError(f"include_prompt={include!r} in {file}: expected true or false")
    return tuple(known[mode] for mode in modes), include


def activation_of(name: object, file: Path) -> str:
    """Our name of a torch.nn class such as `torch.nn.modules.activation.Tanh`."""
    text = str(name).removesuffix("()")
    known = ACTIVATION_CLASSES.get(text.rpartition(".")[2])
    if known is None or not text.startswith("torch.nn."):
        raise CheckpointError(
            f"activation {name!r} in {file}: expected torch.nn and one of "
            f"{sorted(ACTIVATION_CLASSES)}"
        )
    return known


def _listed(file: Path) -> list[tuple[str, str]]:
    """(type, path) of each module, in order."""
    try:
        modules: list[Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        return [(str(module["type"]), str(module["path"])) for module in modules]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} is not a list of sentence-transformers modules") from error


def _kind(file: Path, type_name: str) -> str:
    kind = type_name.rpartition(".")[2]
    if kind not in (*_ORDER, *_SPARSE) or type_name.split(".")[0] not in _PUBLISHERS:
        raise CheckpointError(
            f"{file} uses module {type_name!r}: expected one of {[*_ORDER, *_SPARSE]} of "
            "sentence-transformers. Without it the answers would be another model's"
        )
    return kind


def _dense(folder: Path, path: str) -> DenseSpec:
    file = folder / path / "config.json"
    data = read_json_object(file)
    inputs, outputs, bias = (
        data.get("in_features"),
        data.get("out_features"),
        data.get("bias", True),
    )
    if not isinstance(inputs, int) or not isinstance(outputs, int) or not isinstance(bias, bool):
        raise CheckpointError(
            f"in_features={inputs!r}, out_features={outputs!r}, bias={bias!r} in {file}: expected "
            "two sizes and true or false"
        )
    if data.get("use_residual"):
        raise CheckpointError(f"use_residual=true in {file}: expected false, the engine adds none")
    activation = activation_of(data.get("activation_function", "torch.nn.Tanh"), file)
    if activation == "softmax":
        raise CheckpointError(f"{file}: a softmax between modules: expected an elementwise one")
    return DenseSpec(
        weight="linear.weight",
        bias="linear.bias" if bias else None,
        inputs=inputs,
        outputs=outputs,
        activation=activation,
        subfolder=path,
    )


def _splade(file: Path, kinds: Sequence[str], pooling: Path) -> SentenceModules:
    if list(kinds) != list(_SPARSE):
        raise CheckpointError(f"{file} chains {list(kinds)}: expected {list(_SPARSE)}")
    data = read_json_object(pooling)
    strategy, activation = data.get("pooling_strategy"), data.get("activation_function", "relu")
    if strategy != "max" or activation not in ("relu", "log1p_relu"):
        raise CheckpointError(
            f"pooling_strategy={strategy!r}, activation_function={activation!r} in {pooling}: "
            "expected max, and relu or log1p_relu"
        )
    return SentenceModules(is_splade=True, twice=activation == "log1p_relu")
