"""RoBERTa (arXiv:1907.11692) and XLM-R (arXiv:1911.02116): BERT with shifted positions."""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.errors import CheckpointError
from engine.models.bert import BertModel
from engine.models.config import ModelConfig
from engine.models.fields import Fields


class RobertaModel(BertModel):
    """Positions are counted from the padding token's id plus one.

    In the reference a padding token within a prompt stands at its own id and is not counted, which
    positions that a device counts for itself cannot follow: such a prompt is refused at admission.
    """

    prefix = "roberta."
    heads = (r"lm_head\..*",)

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        config, padding = super().read_config(fields), fields.values.get("pad_token_id", 1)
        if not isinstance(padding, int) or not 0 <= padding < config.max_positions - 1:
            raise CheckpointError(
                f"pad_token_id={padding!r} in {fields.file}: expected a token id, since positions "
                "begin after it"
            )
        return replace(config, padding_id=padding, max_positions=config.max_positions - padding - 1)

    @classmethod
    def num_positions(cls, config: ModelConfig) -> int:
        assert config.padding_id is not None  # by `read_config`
        return config.max_positions + config.padding_id + 1

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        assert self.config.padding_id is not None  # by `read_config`
        # Not in place: the positions are the runner's.
        return super().embed(token_ids, type_ids, positions + (self.config.padding_id + 1))
