"""The contract between a model and whoever runs it: blocks of phases over a packed batch.

T is the number of rows of a step (tokens of all its sequences, one after another, then padding), S
the number of sequences, B the blocks of the longest table, D the hidden size, H and H_kv the query
and key heads, d their width. A compiled graph is specialised where S or B is 1: pad with an empty
sequence (equal row offsets) and with an unused column if one graph is to serve all steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import nn

from engine.attention import paged_attention
from engine.errors import ConfigurationError
from engine.kernels import kernels_called

if TYPE_CHECKING:
    from engine.models.config import LayerKind, ModelConfig
    from engine.models.fields import Fields
    from engine.weights import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionMetadata:
    """Where a step's rows belong; device tensors, all int64."""

    row_offsets: torch.Tensor
    """[S + 1]: sequence s is rows row_offsets[s] .. row_offsets[s + 1] - 1 of the batch."""
    context_starts: torch.Tensor
    """[S]: tokens of the sequence computed before this step, so the position of its first row."""
    block_tables: torch.Tensor
    """[S, B]: KV block of each run of `block_size` positions."""
    slot_mapping: torch.Tensor
    """[T]: flat KV slot that each row's key and value go to; -1 for padding rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCache:
    """One layer's keys and values, each [num_blocks * block_size, H_kv, d]; empty for encoders."""

    keys: torch.Tensor
    values: torch.Tensor
    block_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOptions:
    """How a model attends; the same for all its layers."""

    backend: str
    kernels: str = "torch"
    batch_invariant: bool


class Block(nn.Module, ABC):
    """One transformer layer: four phases and two additions, pure functions of tensors and `window`.

    Only `attend` reads the batch's layout and touches the cache. `attention_output` and
    `feed_forward` end in a product; what follows it (residual, norm) is the addition's, so that
    tensor ranks can sum their parts of the product in between (arXiv:1909.08053, section 3).
    Read-only in use, so any number of engines may share a block.

    No phase reads `kind`: who calls them looks there for the window and the rotary table to hand
    in. Layers of one model then differ in tensors and in one number only, which are a graph's
    inputs, so that all of them run one compiled graph.

    `config` has the sizes of this rank's part: its heads, its share of the feed-forward.
    """

    column_split: ClassVar[Mapping[str, int]] = {}
    """Products of a layer whose outputs tensor ranks divide: name (without `.weight`) -> how many
    equal parts lie one after another in its rows, 1 unless a checkpoint fuses several."""
    row_split: ClassVar[tuple[str, ...]] = ()
    """Products of a layer whose inputs tensor ranks divide. Neither table: not tensor parallel."""

    def __init__(self, config: ModelConfig, options: AttentionOptions, kind: LayerKind) -> None:
        super().__init__()
        self.kind = kind
        self.num_heads = config.num_heads
        self.num_kv_heads = config.num_kv_heads
        self.head_dim = config.head_dim
        self.norm_eps = config.norm_eps
        self.causal = config.causal
        self.scale = config.attention_scale
        self.backend = options.backend
        self.batch_invariant = options.batch_invariant
        self.kernels = kernels_called(options.kernels)

    def products(self) -> Iterator[nn.Parameter]:
        """Its matrices [N, K], of the model's dtype; norms may be wider."""
        return (weight for weight in self.parameters() if weight.dim() == 2)

    @abstractmethod
    def attention_inputs(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x [T, D], cos and sin [T, d] -> q [T, H, d], k [T, H_kv, d], v [T, H_kv, d]."""

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cache: LayerCache,
        meta: AttentionMetadata,
        window: int,
    ) -> torch.Tensor:
        """Write k and v to the cache and attend; -> [T, H * d]. See `paged_attention`."""
        attended: torch.Tensor = paged_attention(
            q,
            k,
            v,
            cache.keys,
            cache.values,
            meta.row_offsets,
            meta.context_starts,
            meta.block_tables,
            meta.slot_mapping,
            cache.block_size,
            self.scale,
            self.causal,
            window,
            self.backend,
            self.batch_invariant,
        )
        return attended

    @abstractmethod
    def attention_output(self, attended: torch.Tensor) -> torch.Tensor:
        """attended [T, H * d] -> y [T, D]; under tensor parallelism this rank's summand of it."""

    def add_attention(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x [T, D] and the whole y [T, D] of `attention_output` -> x [T, D]."""
        return x + y

    @abstractmethod
    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [T, D] -> y [T, D]; under tensor parallelism this rank's summand of it."""

    def add_feed_forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x [T, D] and the whole y [T, D] of `feed_forward` -> x [T, D]."""
        return x + y

    def forward(
        self,
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        cache_keys: torch.Tensor,
        cache_values: torch.Tensor,
        row_offsets: torch.Tensor,
        context_starts: torch.Tensor,
        block_tables: torch.Tensor,
        slot_mapping: torch.Tensor,
        block_size: int,
        window: int,
    ) -> torch.Tensor:
        """All of it in order; tensors and numbers, so the compiler sees one graph. -> [T, D]."""
        q, k, v = self.attention_inputs(x, cos, sin)
        cache = LayerCache(keys=cache_keys, values=cache_values, block_size=block_size)
        meta = AttentionMetadata(
            row_offsets=row_offsets,
            context_starts=context_starts,
            block_tables=block_tables,
            slot_mapping=slot_mapping,
        )
        attended = self.attend(q, k, v, cache, meta, window)
        x = self.add_attention(x, self.attention_output(attended))
        return self.add_feed_forward(x, self.feed_forward(x))


class Model(nn.Module, ABC):
    """One pipeline stage of a model: a run of its layers, and the ends that the run includes.

    Read-only in use: engines in one process may share it, and a rank may run any slice of `blocks`.
    Under tensor parallelism a rank's model has its part of every block, and the ends whole.
    """

    block_class: ClassVar[type[Block]]

    @classmethod
    @abstractmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        """The family's config.json in the engine's terms; what is not implemented is refused.

        Raises:
            CheckpointError, UnsupportedModelError: see `read_model_config`.
        """

    def __init__(
        self,
        config: ModelConfig,
        checkpoint: Checkpoint,
        *,
        layers: range,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.config = config
        self.layers = layers
        self.dtype = dtype
        self._checkpoint = checkpoint
        self.blocks = nn.ModuleList()

    @property
    def first_layer(self) -> int:
        """Index in the whole model of `blocks[0]`."""
        return self.layers.start

    @property
    def is_first_stage(self) -> bool:
        return self.layers.start == 0

    @property
    def is_last_stage(self) -> bool:
        return self.layers.stop == self.config.num_layers

    @abstractmethod
    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        """Three [T] int64 -> x [T, D]. Decoders read only the first. First stage only."""

    @abstractmethod
    def rotary(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """positions [T] int64 -> (cos, sin), each [K, T, d] for K kinds of layers, see `LayerKind`.

        [1, T, 0] where positions are embedded.
        """

    @abstractmethod
    def final_norm(self, x: torch.Tensor) -> torch.Tensor:
        """[T, D] -> [T, D], what poolers read. Last stage only."""

    @property
    @abstractmethod
    def lm_head_name(self) -> str | None:
        """Tensor of the checkpoint whose rows are the LM head's; None: it has no such head."""

    def lm_head_rows(self, ids: Sequence[int]) -> torch.Tensor:
        """Rows `ids` of the LM head, [len(ids), D]; read from the file, so for start-up only.

        Raises:
            ConfigurationError: the checkpoint has no LM head, or an id is not a row of it.
        """
        name = self.lm_head_name
        if name is None:
            raise ConfigurationError(
                f"expected an LM head to take rows {list(ids)} from, got "
                f"{self.config.architecture} without one. Use the language model's checkpoint, or "
                "another task"
            )
        wrong = [row for row in ids if not 0 <= row < self.config.vocab_size]
        if wrong:
            raise ConfigurationError(
                f"LM head rows {wrong}: expected ids in 0..{self.config.vocab_size - 1}"
            )
        return self._checkpoint.read(name, self.dtype)[list(ids)]

    def _require_stage(self, what: str, *, has: bool) -> None:
        if not has:
            raise ConfigurationError(
                f"{what} was asked of the stage with layers {self.layers.start}.."
                f"{self.layers.stop - 1} of {self.config.num_layers}, which does not hold it"
            )
