"""Architectures with a head on top: the backbone they run, and the tensors that are the head's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.jsonfile import read_json_object
from engine.models.registry import ARCHITECTURES

_CLASSIFIERS: Final = (
    r"(score|classifier|pre_classifier|head)\..*",
    r"dropout\..*",
)
HEAD_TENSORS: Final[dict[str, tuple[str, ...]]] = {
    "ForSequenceClassification": _CLASSIFIERS,
    "ForTokenClassification": _CLASSIFIERS,
    "ForRewardModel": _CLASSIFIERS,
    "ForProcessRewardModel": _CLASSIFIERS,
    "ForMaskedLM": (
        r"(cls|lm_head|head|decoder)\..*",
        r"vocab_(transform|layer_norm|projector)\..*",
    ),
    "ForRanking": (r"projector\..*", r"lm_head\..*"),
    "ColBERT": (r"linear\.weight",),
}
"""Ending of an architecture's name -> patterns of the tensors that a pooling head reads."""
_PROJECTIONS: Final = {"HF_ColBERT": "BertModel", "JinaForRanking": "Qwen3Model"}
"""Names that do not begin with their family's."""


def head_of(architecture: str) -> str | None:
    """The ending in `HEAD_TENSORS` that names an architecture's head; None: it has none."""
    return next((ending for ending in HEAD_TENSORS if architecture.endswith(ending)), None)


def backbone(architecture: str) -> str:
    """The architecture of the registry under a head; what has no head there is itself."""
    ending = head_of(architecture)
    if architecture in _PROJECTIONS:
        return _PROJECTIONS[architecture]
    if architecture in ARCHITECTURES or ending is None:
        return architecture
    name = architecture.removesuffix(ending) + "Model"
    return name if name in ARCHITECTURES else architecture


def head_tensors(folder: Path) -> tuple[str, ...]:
    """Patterns of the tensors in a model folder that its head reads."""
    named = read_json_object(folder / "config.json").get("architectures") or [""]
    return HEAD_TENSORS.get(head_of(str(named[0])) or "", ())
