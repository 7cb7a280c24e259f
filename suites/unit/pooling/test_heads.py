"""Heads against their formulas, and what they must not do: copy when there is nothing to do.

Passes wrongly if logits and scores were alike within the bound. Ruled out by
suites/meta/test_suites_can_fail.py: `heads-give-logits-whatever-is-asked`.
"""

from __future__ import annotations

import pytest
import torch

from engine.pooling.heads import ClassifierHead, EmbeddingHead
from engine.pooling.heads.classifier import difference
from engine.request import PoolingParams

DIM = 6


def rows(n: int = 3, *, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(n, DIM, generator=torch.Generator().manual_seed(n)).to(dtype)


def test_identity_returns_the_tensor_it_was_given() -> None:
    x = rows()
    plain = EmbeddingHead(DIM, normalize=False)
    assert plain(x, PoolingParams()) is x
    assert plain(x, PoolingParams(dimensions=DIM)) is x
    assert EmbeddingHead(DIM, normalize=True)(x, PoolingParams(normalize=False)) is x
    assert EmbeddingHead(DIM, normalize=False, dtype=x.dtype)(x, PoolingParams()) is x


def test_dimensions_are_cut_before_normalising() -> None:
    x = rows()
    got = EmbeddingHead(DIM, normalize=True)(x, PoolingParams(dimensions=2))
    cut = x[:, :2].double()
    expected = cut / cut.norm(dim=1, keepdim=True)
    assert got.shape == (3, 2)
    assert (got.double() - expected).abs().max() <= 4 * torch.finfo(torch.float32).eps


def test_dimensions_without_normalising_are_the_first_values() -> None:
    x = rows()
    got = EmbeddingHead(DIM, normalize=False)(x, PoolingParams(dimensions=2))
    assert torch.equal(got, x[:, :2])


@pytest.mark.parametrize(
    ("default", "asked", "unit"),
    [(True, None, True), (False, None, False), (False, True, True), (True, False, False)],
    ids=str,
)
def test_the_request_overrides_the_model(*, default: bool, asked: bool | None, unit: bool) -> None:
    x = rows() * 10
    got = EmbeddingHead(DIM, normalize=default)(x, PoolingParams(normalize=asked))
    assert bool((got.norm(dim=1) < 2).all()) is unit


def test_output_dtype_is_the_heads() -> None:
    head = EmbeddingHead(DIM, normalize=True, dtype=torch.float32)
    assert head(rows(dtype=torch.bfloat16), PoolingParams()).dtype == torch.float32


@pytest.mark.parametrize("classes", [1, 3])
def test_classifier_is_a_product_and_an_activation(classes: int) -> None:
    x, weight, bias = rows(), torch.randn(classes, DIM), torch.randn(classes)
    head = ClassifierHead(weight, bias, min_rows=8)
    logits = x.double() @ weight.double().T + bias.double()
    scores = logits.sigmoid() if classes == 1 else logits.softmax(-1)
    bound = DIM * torch.finfo(torch.float32).eps * (x.abs().max() * weight.abs().max() * DIM)
    got = head(x, PoolingParams(activation=False))
    assert got.shape == (3, classes)
    assert (got.double() - logits).abs().max() <= bound
    assert (got - scores).abs().max() > 0.01, "the bound below would not tell the two apart"
    for params in (PoolingParams(), PoolingParams(activation=True)):
        assert (head(x, params).double() - scores).abs().max() <= bound


def test_a_row_does_not_depend_on_its_company_below_the_padding() -> None:
    x = rows(8)
    head = ClassifierHead(torch.randn(3, DIM), min_rows=8)
    alone = torch.cat([head(row.unsqueeze(0), PoolingParams()) for row in x])
    assert torch.equal(alone, head(x, PoolingParams()))


def test_min_rows_reaches_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def linear(x: torch.Tensor, weight: torch.Tensor, bias: object, *, min_rows: int) -> object:
        seen.append(min_rows)
        return x @ weight.T

    monkeypatch.setattr("engine.pooling.heads.classifier.linear", linear)
    ClassifierHead(torch.randn(1, DIM), min_rows=5)(rows(), PoolingParams())
    assert seen == [5]


def test_yes_no_is_the_softmax_of_the_two_logits() -> None:
    yes, no, x = torch.randn(DIM), torch.randn(DIM), rows()
    head = ClassifierHead(difference(yes, no), min_rows=2)
    logits = x.double() @ torch.stack([no, yes]).double().T
    expected = logits.softmax(-1)[:, 1:]
    assert head.num_classes == 1
    assert (head(x, PoolingParams()).double() - expected).abs().max() <= 1e-6
    assert (expected - 0.5).abs().min() > 1e-3, "yes and no would be told apart"


def test_yes_no_subtracts_in_float32() -> None:
    """1 - 2**-9 rounds to 1 in bfloat16."""
    yes = torch.full((DIM,), 1.0, dtype=torch.bfloat16)
    no = torch.full((DIM,), 2.0**-9, dtype=torch.bfloat16)
    logit = ClassifierHead(difference(yes, no), min_rows=2)(
        torch.ones(1, DIM, dtype=torch.bfloat16), PoolingParams(activation=False)
    )
    assert logit.dtype == torch.float32
    assert logit.item() == DIM * (1 - 2.0**-9)
