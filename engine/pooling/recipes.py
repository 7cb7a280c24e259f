"""From a checkpoint's files to routes; one function for each kind of checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.errors import CheckpointError
from engine.jsonfile import read_json_object
from engine.pooling.bge_m3 import colbert_linear, sparse_linear
from engine.pooling.heads.base import HeadSpec
from engine.pooling.heads.classifier import UNCALIBRATED, ClassifierSpec, LmRowsSpec
from engine.pooling.heads.embedding import EmbeddingSpec
from engine.pooling.heads.layers import DenseSpec
from engine.pooling.heads.lexical import LexicalSpec
from engine.pooling.heads.listwise import ListwiseSpec
from engine.pooling.heads.splade import SpladeSpec
from engine.pooling.hf_heads import HeadedFolder, masked_lm, sequence_classifier, token_classifier
from engine.pooling.method import ALL, MethodSpec
from engine.pooling.pooler_file import PoolerFile
from engine.pooling.routes import Part, Routes
from engine.pooling.st_modules import SentenceModules
from engine.request import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a folder's files say. `method`: of sequence-level tasks; `normalize`: of vectors."""

    folder: Path
    hidden: int
    ending: str | None
    """Of the architecture's name, if it has a head; see `engine.models.headed`."""
    modules: SentenceModules
    pooler: PoolerFile
    method: MethodSpec
    normalize: bool

    @property
    def tokens(self) -> MethodSpec:
        """Rows of token-level classification: all, or those at the step tag."""
        tag = self.pooler.step_tag
        return ALL if tag is None else MethodSpec(names=("SELECTED",), token_ids=frozenset({tag}))


def routes_of(source: Source) -> Routes:
    """Every task that the folder holds a head for. Raises CheckpointError."""
    if source.pooler.listwise is not None:
        return _listwise(source)
    routes = dict(_embeddings(source))
    if source.ending in _HEADED:
        routes |= _HEADED[source.ending](source)
    routes |= _lm_head(source)
    routes |= _bge_m3(source, routes)
    _check_used(source, routes)
    return routes


def _embeddings(source: Source) -> Routes:
    modules, hidden = source.modules, source.hidden
    if modules.is_splade:
        found = masked_lm(HeadedFolder(source.folder))
        head = SpladeSpec(layers=found.layers, output=found.output, twice=modules.twice)
        return {Task.EMBED: _one(ALL, head)}
    if source.ending == "ColBERT":
        return _colbert(source, (HeadedFolder(source.folder).dense("linear"),))
    if modules.methods is None and modules.layers:
        return _colbert(source, modules.layers)
    width = hidden * len(source.method.names)
    for layer in modules.layers:
        if layer.inputs != width:
            raise CheckpointError(
                f"{source.folder / layer.subfolder}: a Dense module of {layer.inputs} inputs after "
                f"{width} values. Set in_features to what the module before it gives"
            )
        width = layer.outputs
    embed = EmbeddingSpec(
        inputs=hidden * len(source.method.names),
        normalize=source.normalize,
        layers=modules.layers,
    )
    tokens = EmbeddingSpec(inputs=hidden, normalize=source.normalize)
    return {Task.EMBED: _one(source.method, embed), Task.TOKEN_EMBED: _one(ALL, tokens)}


def _colbert(source: Source, layers: tuple[DenseSpec, ...]) -> Routes:
    """Late interaction (arXiv:2004.12832): projected and normalised rows, no single vector."""
    head = EmbeddingSpec(inputs=source.hidden, normalize=True, layers=layers)
    return {Task.TOKEN_EMBED: _one(ALL, head)}


def _sequence_classifier(source: Source) -> Routes:
    folder = HeadedFolder(source.folder)
    found = sequence_classifier(folder)
    folder.check_labels(found.output.outputs)
    head = ClassifierSpec(
        output=found.output,
        layers=found.layers,
        activation=source.pooler.activation or folder.class_activation(),
        calibration=source.pooler.calibration,
    )
    if found.method is not None:
        return {Task.CLASSIFY: _one(MethodSpec(names=(found.method,)), head)}
    last = MethodSpec(names=("LAST",))
    return {Task.CLASSIFY: _one(last, head), Task.TOKEN_CLASSIFY: _one(source.tokens, head)}


def _token_classifier(source: Source) -> Routes:
    folder = HeadedFolder(source.folder)
    found = token_classifier(folder)
    folder.check_labels(found.output.outputs)
    head = ClassifierSpec(
        output=found.output,
        layers=found.layers,
        activation=source.pooler.activation or folder.class_activation(),
        calibration=source.pooler.calibration,
    )
    return {Task.TOKEN_CLASSIFY: _one(source.tokens, head)}


_HEADED: Final[Mapping[str | None, Callable[[Source], Routes]]] = {
    "ForSequenceClassification": _sequence_classifier,
    "ForRewardModel": _sequence_classifier,
    "ForTokenClassification": _token_classifier,
    "ForProcessRewardModel": _token_classifier,
}
"""Ending of an architecture's name -> what its head adds."""


def _lm_head(source: Source) -> Routes:
    """Classifiers made of LM head rows: a yes/no reranker (seeds, rule 5), a process reward."""
    routes: dict[Task, tuple[Part, ...]] = {}
    pooler, calibration = source.pooler, source.pooler.calibration
    file = source.folder / "reranker.json"
    if file.exists():
        data = read_json_object(file)
        head = LmRowsSpec(
            ids=(int(data["yes"]), int(data["no"])),
            is_difference=True,
            activation=pooler.activation,
            calibration=calibration,
        )
        routes |= {
            Task.CLASSIFY: _one(source.method, head),
            Task.TOKEN_CLASSIFY: _one(source.tokens, head),
        }
    if pooler.returned:
        head = LmRowsSpec(
            ids=pooler.returned, activation=pooler.activation, calibration=calibration
        )
        routes[Task.TOKEN_CLASSIFY] = _one(source.tokens, head)
    return routes


def _bge_m3(source: Source, routes: Routes) -> Routes:
    found: dict[Task, tuple[Part, ...]] = {}
    colbert = colbert_linear(source.folder, source.hidden)
    if colbert is not None:
        head = EmbeddingSpec(
            inputs=source.hidden, normalize=True, layers=(colbert,), drops_first=True
        )
        found[Task.TOKEN_EMBED] = _one(ALL, head)
    sparse = sparse_linear(source.folder, source.hidden)
    if sparse is not None:
        weights = _one(ALL, LexicalSpec(output=sparse))
        found[Task.TOKEN_CLASSIFY] = weights
        if Task.EMBED in routes:
            found[Task.EMBED_AND_TOKEN_CLASSIFY] = (*routes[Task.EMBED], *weights)
    return found


def _listwise(source: Source) -> Routes:
    """One prompt, several documents: a score for each, and the projected marker rows themselves."""
    listwise = source.pooler.listwise
    assert listwise is not None, "the caller checked"
    folder = HeadedFolder(source.folder)
    layers: tuple[DenseSpec, ...] = ()
    if folder.has("projector.0.weight"):
        first = folder.dense("projector.0", activation="relu")
        layers = (first, folder.dense("projector.2", inputs=first.outputs))
    method = MethodSpec(
        names=("SELECTED",),
        token_ids=frozenset({listwise.document, listwise.query}),
        closing=listwise.query,
    )
    scores = ListwiseSpec(layers=layers, is_cosine=listwise.is_cosine)
    rows = EmbeddingSpec(inputs=source.hidden, normalize=False, layers=layers)
    return {Task.TOKEN_CLASSIFY: _one(method, scores), Task.TOKEN_EMBED: _one(method, rows)}


def _check_used(source: Source, routes: Routes) -> None:
    """What pooler.json asks for must have a head to act on."""
    parts = [part for route in routes.values() for part in route]
    pooler = source.pooler
    judges = any(isinstance(part.head, ClassifierSpec | LmRowsSpec) for part in parts)
    picks = any(part.method == source.tokens for part in parts)
    asks = pooler.activation is not None or pooler.calibration != UNCALIBRATED
    if (asks and not judges) or (pooler.step_tag is not None and not picks):
        raise CheckpointError(
            f"{source.folder / 'pooler.json'} configures a classifier, and this checkpoint has "
            "none that it acts on: expected a classification architecture, reranker.json or "
            "returned_token_ids"
        )


def _one(method: MethodSpec, head: HeadSpec) -> tuple[Part, ...]:
    return (Part(method=method, head=head),)
