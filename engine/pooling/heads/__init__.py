"""What is computed from the rows that a pooling method picked; one file a head.

A head is applied to one request at a time, so no request's answer depends on its neighbours. A spec
says what a checkpoint asks for, before any weight is read; `build` makes the head itself.
"""

from __future__ import annotations

from engine.pooling.heads.base import Head, HeadSpec
from engine.pooling.heads.classifier import ClassifierHead, ClassifierSpec
from engine.pooling.heads.embedding import EmbeddingHead, EmbeddingSpec

__all__ = [
    "ClassifierHead",
    "ClassifierSpec",
    "EmbeddingHead",
    "EmbeddingSpec",
    "Head",
    "HeadSpec",
]
