"""Heads as Hugging Face's architectures define them; one table a kind of head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.errors import CheckpointError
from engine.jsonfile import read_json_object
from engine.models.headed import head_of
from engine.pooling.heads.layers import DenseSpec, LayerNormSpec, LayerSpec
from engine.pooling.st_modules import activation_of
from engine.weights import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadLayers:
    """What is applied to a pooled row; `output` last. `method` None: the family's habit."""

    layers: tuple[LayerSpec, ...]
    output: DenseSpec
    method: str | None = None


class HeadedFolder:
    """config.json of a folder and the names and shapes of its tensors. Owns: nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.values: Mapping[str, Any] = read_json_object(folder / "config.json")
        self.architecture = str((self.values.get("architectures") or [""])[0])
        self.ending = head_of(self.architecture)
        self._checkpoint = Checkpoint(folder)

    @property
    def family(self) -> str:
        """What stands before the ending: `Bert` of BertForMaskedLM."""
        return self.architecture.removesuffix(self.ending or "")

    @property
    def hidden(self) -> int:
        return int(self.values.get("hidden_size") or self.values["dim"])

    def dense(self, *names: str, inputs: int = 0, activation: str = "identity") -> DenseSpec:
        """The product stored under the first of `names` that is there. Raises CheckpointError."""
        for name in names:
            if f"{name}.weight" in self._checkpoint:
                shape = self._checkpoint.shape(f"{name}.weight")
                bias = f"{name}.bias"
                return DenseSpec(
                    weight=f"{name}.weight",
                    bias=bias if bias in self._checkpoint else None,
                    inputs=inputs or self.hidden,
                    outputs=shape[0],
                    activation=activation,
                )
        raise CheckpointError(
            f"{self.folder} is a {self.architecture}: expected tensor {names[0]}.weight of its "
            "head, got no such tensor. Save the model with its head again"
        )

    def has(self, name: str) -> bool:
        return name in self._checkpoint

    def norm(self, name: str, eps: float) -> LayerNormSpec:
        bias = f"{name}.bias"
        return LayerNormSpec(
            weight=f"{name}.weight",
            bias=bias if bias in self._checkpoint else None,
            outputs=self.hidden,
            eps=eps,
        )

    def tied(self, decoder: str, bias: str, *embeddings: str) -> DenseSpec:
        """A masked-LM decoder: its own weight if saved, else the embedding's, and its bias."""
        found = self.dense(decoder, *(name.removesuffix(".weight") for name in embeddings))
        for name in (bias, f"{decoder}.bias"):
            if name in self._checkpoint:
                return DenseSpec(
                    weight=found.weight, bias=name, inputs=found.inputs, outputs=found.outputs
                )
        return found

    def class_activation(self) -> str | None:
        """A classifier's activation, as sentence-transformers or `problem_type` has it."""
        nested = self.values.get("sentence_transformers")
        named = nested.get("activation_fn") if isinstance(nested, dict) else None
        named = named or self.values.get("sbert_ce_default_activation_function")
        if named is not None:
            found = activation_of(named, self.folder / "config.json")
            if found in ("identity", "sigmoid", "softmax"):
                return found
            raise CheckpointError(
                f"activation {named!r} in {self.folder / 'config.json'}: expected Identity, "
                "Sigmoid or Softmax"
            )
        if self.ending == "ForRewardModel":
            return "identity"
        problem = self.values.get("problem_type")
        return {"regression": "identity", "multi_label_classification": "sigmoid"}.get(problem)  # type: ignore[arg-type]

    def check_labels(self, found: int) -> None:
        """config.json and the weights must agree on the number of classes."""
        names = self.values.get("id2label")
        said = self.values.get("num_labels") or (len(names) if isinstance(names, dict) else found)
        if said != found:
            raise CheckpointError(
                f"{self.folder}: {said} labels in config.json, {found} classes in the weights. "
                "Repair num_labels or id2label"
            )


def _bert(folder: HeadedFolder) -> HeadLayers:
    pooler = folder.dense("bert.pooler.dense", "pooler.dense", activation="tanh")
    return HeadLayers(layers=(pooler,), output=folder.dense("classifier"), method="CLS")


def _roberta(folder: HeadedFolder) -> HeadLayers:
    dense = folder.dense("classifier.dense", activation="tanh")
    return HeadLayers(layers=(dense,), output=folder.dense("classifier.out_proj"), method="CLS")


def _distilbert(folder: HeadedFolder) -> HeadLayers:
    dense = folder.dense("pre_classifier", activation="relu")
    return HeadLayers(layers=(dense,), output=folder.dense("classifier"), method="CLS")


def _modernbert_layers(folder: HeadedFolder) -> tuple[LayerSpec, ...]:
    activation = str(folder.values.get("classifier_activation", "gelu"))
    eps = float(folder.values.get("norm_eps", 1e-5))
    return (folder.dense("head.dense", activation=activation), folder.norm("head.norm", eps))


def _modernbert(folder: HeadedFolder) -> HeadLayers:
    return HeadLayers(
        layers=_modernbert_layers(folder),
        output=folder.dense("classifier"),
        method=str(folder.values.get("classifier_pooling", "cls")).upper(),
    )


def _score(folder: HeadedFolder) -> HeadLayers:
    """A decoder's: one product; reward models of Qwen2 have two with relu between."""
    if folder.has("score.0.weight"):
        first = folder.dense("score.0", activation="relu")
        return HeadLayers(layers=(first,), output=folder.dense("score.2", inputs=first.outputs))
    return HeadLayers(layers=(), output=folder.dense("score"))


SEQUENCE_CLASSIFIERS: Final[Mapping[str, Callable[[HeadedFolder], HeadLayers]]] = {
    "Bert": _bert,
    "Roberta": _roberta,
    "XLMRoberta": _roberta,
    "DistilBert": _distilbert,
    "ModernBert": _modernbert,
}
"""Encoder families; every other has a `score`."""


def sequence_classifier(folder: HeadedFolder) -> HeadLayers:
    """Raises CheckpointError for a head that is incomplete."""
    return SEQUENCE_CLASSIFIERS.get(folder.family, _score)(folder)


def token_classifier(folder: HeadedFolder) -> HeadLayers:
    """Raises CheckpointError for a head that is incomplete."""
    if folder.family not in SEQUENCE_CLASSIFIERS:
        return _score(folder)
    layers = _modernbert_layers(folder) if folder.family == "ModernBert" else ()
    return HeadLayers(layers=layers, output=folder.dense("classifier"))


def _bert_words(folder: HeadedFolder) -> HeadLayers:
    activation = str(folder.values.get("hidden_act", "gelu"))
    eps = float(folder.values.get("layer_norm_eps", 1e-12))
    prefix = "cls.predictions"
    return HeadLayers(
        layers=(
            folder.dense(f"{prefix}.transform.dense", activation=activation),
            folder.norm(f"{prefix}.transform.LayerNorm", eps),
        ),
        output=folder.tied(
            f"{prefix}.decoder", f"{prefix}.bias", "bert.embeddings.word_embeddings.weight"
        ),
    )


def _roberta_words(folder: HeadedFolder) -> HeadLayers:
    eps = float(folder.values.get("layer_norm_eps", 1e-5))
    return HeadLayers(
        layers=(
            folder.dense("lm_head.dense", activation="gelu"),
            folder.norm("lm_head.layer_norm", eps),
        ),
        output=folder.tied(
            "lm_head.decoder", "lm_head.bias", "roberta.embeddings.word_embeddings.weight"
        ),
    )


def _distilbert_words(folder: HeadedFolder) -> HeadLayers:
    activation = str(folder.values.get("activation", "gelu"))
    return HeadLayers(
        layers=(
            folder.dense("vocab_transform", activation=activation),
            folder.norm("vocab_layer_norm", 1e-12),
        ),
        output=folder.tied(
            "vocab_projector",
            "vocab_projector.bias",
            "distilbert.embeddings.word_embeddings.weight",
        ),
    )


def _modernbert_words(folder: HeadedFolder) -> HeadLayers:
    return HeadLayers(
        layers=_modernbert_layers(folder),
        output=folder.tied("decoder", "decoder.bias", "model.embeddings.tok_embeddings.weight"),
    )


MASKED_LMS: Final[Mapping[str, Callable[[HeadedFolder], HeadLayers]]] = {
    "Bert": _bert_words,
    "Roberta": _roberta_words,
    "XLMRoberta": _roberta_words,
    "DistilBert": _distilbert_words,
    "ModernBert": _modernbert_words,
}


def masked_lm(folder: HeadedFolder) -> HeadLayers:
    """The head over the vocabulary. Raises CheckpointError where there is none."""
    if folder.ending != "ForMaskedLM" or folder.family not in MASKED_LMS:
        raise CheckpointError(
            f"{folder.folder} is a {folder.architecture}: expected one of "
            f"{[f'{family}ForMaskedLM' for family in MASKED_LMS]}, whose head SPLADE reads"
        )
    return MASKED_LMS[folder.family](folder)
