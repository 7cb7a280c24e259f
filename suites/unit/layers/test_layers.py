"""Each layer against its formula.

Passes wrongly if a formula and its layer were compared where both give the same, as at position 0.
Ruled out by suites/meta/test_suites_can_fail.py: `rotation-turns-backwards`.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from engine.layers.activation import ACTIVATIONS
from engine.layers.linear import MIN_ROWS, linear
from engine.layers.norm import rms_norm
from engine.layers.rotary import inverse_frequencies, rotary_table, rotate
from suites.unit import few_rows

FUSED = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize("rows", [1, 3, 7, 8, 20])
def test_linear_is_the_product_whatever_the_padding(rows: int) -> None:
    x, weight, bias = draw(rows, 5), draw(4, 5), draw(4)
    out = linear(x, weight, bias, min_rows=MIN_ROWS)
    assert out.shape == (rows, 4)
    assert float((out - (x @ weight.T + bias)).abs().max()) < 1e-14


def test_linear_gives_a_row_the_bits_it_has_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows.plant(monkeypatch)
    x, weight = draw(64, 192, dtype=torch.float32), draw(64, 192, dtype=torch.float32)
    whole = F.linear(x, weight)
    for row in range(64):
        one = x[row : row + 1]
        assert torch.equal(linear(one, weight, min_rows=MIN_ROWS), whole[row : row + 1])
    # What the padding is for: on its own, some row comes out differently.
    assert not all(
        torch.equal(linear(x[r : r + 1], weight, min_rows=1), whole[r : r + 1]) for r in range(64)
    )


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_are_pytorchs_up_to_roundoff(name: str) -> None:
    x = torch.cat((draw(1000) * 4, torch.tensor([0.0, -800.0, 800.0])))
    out = ACTIVATIONS[name](x)
    assert float((out - FUSED[name](x)).abs().max()) < 1e-14
    half = x.bfloat16()
    assert torch.equal(ACTIVATIONS[name](half), FUSED[name](half))
    assert set(ACTIVATIONS) == set(FUSED)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_an_activation_does_not_depend_on_where_a_value_lies(name: str) -> None:
    x = draw(1000, dtype=torch.float32)
    whole = ACTIVATIONS[name](x)
    for first, count in ((1, 7), (3, 17), (500, 499)):
        part = ACTIVATIONS[name](x[first : first + count].clone())
        assert torch.equal(part, whole[first : first + count])


def test_the_fused_silu_does_depend_on_it() -> None:
    """Why activations are composed; once this fails, the fused one may be used again."""
    x = draw(1000, dtype=torch.float32)
    assert not torch.equal(
        torch.cat([F.silu(x[i : i + 1].clone()) for i in range(1000)]), F.silu(x)
    )


def test_rms_norm_is_its_formula_in_the_widest_dtype() -> None:
    x, weight = draw(5, 16), draw(16)
    expected = torch.stack([r / math.sqrt(float((r * r).sum()) / 16 + 1e-6) * weight for r in x])
    assert float((rms_norm(x, weight, 1e-6) - expected).abs().max()) < 1e-15
    # Squared in float16, 300 would overflow (its largest value is 65504).
    half = rms_norm(torch.full((1, 4), 300.0, dtype=torch.float16), torch.ones(4).half(), 1e-6)
    assert half.dtype == torch.float16
    assert torch.equal(half, torch.ones_like(half))


def test_rotation_turns_each_pair_by_position_times_frequency() -> None:
    head_dim, theta = 8, 10_000.0
    frequencies = inverse_frequencies(head_dim, theta)
    positions = torch.tensor([0, 1, 5, 300])
    cos, sin = rotary_table(positions, frequencies, torch.float64)
    x = draw(4, 2, head_dim)
    out = rotate(x, cos, sin)
    for row, position in enumerate(positions.tolist()):
        for pair in range(head_dim // 2):
            angle = position * theta ** (-2 * pair / head_dim)
            turned = torch.view_as_complex(
                torch.stack((x[row, :, pair], x[row, :, pair + head_dim // 2]), -1)
            ) * complex(math.cos(angle), math.sin(angle))
            got = torch.complex(out[row, :, pair], out[row, :, pair + head_dim // 2])
            # The angle is float32 by definition: unit roundoff 6e-8 of at most 300 radians.
            assert float((got - turned).abs().max()) < 1e-4


def test_rotary_angles_are_float32_in_every_dtype() -> None:
    frequencies = inverse_frequencies(16, 1e6)
    positions = torch.arange(2000, 3000)
    single, _ = rotary_table(positions, frequencies, torch.float32)
    double, _ = rotary_table(positions, frequencies, torch.float64)
    assert torch.equal(single.double(), double)
    assert frequencies.dtype == torch.float32
