"""How each task is answered: which rows, and which head reads them. Needs no weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.pooling.heads.base import HeadSpec
from engine.pooling.method import MethodSpec
from engine.request import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows by `method`, read by `head`."""

    method: MethodSpec
    head: HeadSpec


Routes = Mapping[Task, tuple[Part, ...]]
"""Each task that some head answers. Two parts are flattened and joined: a dense embedding and the
weights of the tokens."""
