"""What makes two runs of the same arithmetic give the same bits, and the proof that it holds here.

Nothing here imports torch before it is used: `prepare_process` has to run before torch loads.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

CPU_FLAGS: Final = {"MKL_CBWR": "AUTO,STRICT"}
"""Environment that must be set before torch loads. STRICT makes MKL's products independent of the
number of rows and threads (oneMKL developer guide, "Conditional Numerical Reproducibility")."""

_MKL_STRICT: Final = 0x10000
"""MKL_CBWR_STRICT of mkl_types.h; the rest of the word names the code branch."""
_MKL_BRANCHES: Final = {0: "OFF", 1: "OFF", 2: "AUTO", 3: "COMPATIBLE", 10: "AVX2", 12: "AVX512"}

INVARIANT_DTYPES: Final = {
    "cpu": ("float32",),
    "cuda": ("float32", "bfloat16", "float16"),
}
"""On a CPU, float64 products depend on the number of rows modulo 4 even in MKL's strict mode
(measured on AVX2, torch 2.13), and half-precision ones leave MKL, so its guarantee does not reach
them."""

PROBED_PRODUCTS: Final = ((64, 128), (1536, 576))
"""(K, N) of the smallest and the largest product of the models that tests run; a model's own are
probed when it is loaded."""
_ALL_ROWS: Final = 160
_ODD_WIDTH: Final = 14
"""Fewer values than two vector registers hold, so that a row alone takes the path of remainders."""
_PIECES: Final = ((0, 8), (2, 9), (3, 31), (1, 64), (5, 127))
"""(first row, rows) that products and norms are repeated on."""
_SINGLE_ROWS: Final = tuple((row, 1) for row in range(_ALL_ROWS))
_PROBED_CHUNKS: Final = ((0, 8), (3, 509), (505, 20), (590, 10))
"""(start, rows) of pieces of a 600-token prompt, around the edges of tiles of 512 keys."""


def prepare_process() -> None:
    """Set `CPU_FLAGS` for this process and its children, keeping values the caller chose.

    Call it before torch is imported: MKL reads its environment once, at the latest when it is
    first used. Called later it changes nothing, so that children do not differ from this process.
    """
    if "torch" in sys.modules:
        return
    for name, value in CPU_FLAGS.items():
        os.environ.setdefault(name, value)


VECTOR_MATH: Final = (
    *("acos", "asin", "atan", "cos", "cosh", "erf", "erfc", "erfinv", "exp", "expm1"),
    *("log", "log10", "log1p", "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"),
)
"""Elementwise functions of torch that MKL or another dispatching library may compute."""


def warm_vector_math() -> None:
    """Call each vector-math function once on one element.

    MKL chooses a kernel for each function and precision when it is first called; if several threads
    make that call at once, one of them can compute its share with a low-accuracy kernel, silently
    (pytorch issue 188792). One element is one thread. Every process that computes calls this first;
    it costs milliseconds.
    """
    import torch  # noqa: PLC0415
    import torch.nn.functional as F  # noqa: PLC0415

    functions = [
        *(getattr(torch, name) for name in VECTOR_MATH),
        F.gelu,
        F.silu,
        F.softplus,
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: torch.pow(2.0, x),
        lambda x: torch.pow(x, 0.3),
        lambda x: torch.softmax(x, dim=-1),
        lambda x: torch.log_softmax(x, dim=-1),
        lambda x: F.layer_norm(x, (1,)),
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    ]
    with torch.inference_mode():
        for dtype in (torch.float32, torch.float64):
            one = torch.full((1, 1), 0.5, dtype=dtype)
            for function in functions:
                function(one)


def mkl_reproducibility() -> str:
    """The reproducible mode MKL is really in, such as `AUTO,STRICT` or `OFF`.

    Read from MKL itself where torch's library lets us ask; otherwise the environment's word for it,
    marked as such. `absent`: torch was built without MKL.
    """
    import torch  # noqa: PLC0415

    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]  # torch's own
        return "absent"
    for library in sorted((Path(torch.__file__).parent / "lib").glob("*torch_cpu.*")):
        try:
            mode = int(ctypes.CDLL(str(library)).mkl_serv_cbwr_get(-1))
        except (OSError, AttributeError):
            continue
        branch = mode & ~_MKL_STRICT
        name = _MKL_BRANCHES.get(branch, f"branch {branch}")
        return f"{name},STRICT" if mode & _MKL_STRICT else name
    return f"{os.environ.get('MKL_CBWR', 'OFF')} (environment)"


def attest_flags() -> dict[str, str]:
    """Process-wide switches that may change a bit; runs held to the same bits must share them."""
    import torch  # noqa: PLC0415

    mode = mkl_reproducibility()
    return {
        "MKL_CBWR": mode,
        "torch": str(torch.__version__),
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "num_threads": str(torch.get_num_threads()),
        "mkl": str(mode != "absent"),
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "mkldnn": str(torch.backends.mkldnn.enabled),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def require_fixed_order(device: str, dtype: str, *, attention: str, kernels: str) -> None:
    """Refuse what rules `batch_invariant` out before anything is measured.

    Raises:
        ConfigurationError: the dtype, MKL's mode, or kernels whose order of sums is not fixed.
    """
    kind = device.partition(":")[0]
    dtypes = INVARIANT_DTYPES[kind]
    if dtype not in dtypes:
        raise ConfigurationError(
            f"batch_invariant with dtype={dtype!r}: expected one of {dtypes} on {kind.upper()}. "
            "Choose one of these, or turn batch_invariant off"
        )
    fixed = ("sdpa", "torch") if kind == "cpu" else ("triton", "triton")
    if (attention, kernels) != fixed:
        raise ConfigurationError(
            f"attention={attention!r} and kernels={kernels!r} with batch_invariant=True on "
            f"device={device!r}: the order of their sums depends on the number of rows or keys. "
            f"Choose attention={fixed[0]!r} and kernels={fixed[1]!r}"
        )
    mode = mkl_reproducibility()
    if kind == "cpu" and "STRICT" not in mode:
        raise ConfigurationError(
            f"batch_invariant needs MKL in strict reproducible mode, got MKL_CBWR={mode}. Set "
            f"MKL_CBWR={CPU_FLAGS['MKL_CBWR']} in the environment before torch is imported (see "
            "engine.determinism.prepare_process) and use a torch built with MKL, or turn "
            "batch_invariant off"
        )


def probe_batch_invariance(
    dtype: str,
    products: Sequence[tuple[int, int]] = PROBED_PRODUCTS,
    *,
    device: str = "cpu",
    head_dim: int = 16,
) -> None:
    """Prove that on this machine no row of a product, function or attention depends on its company.

    `products` are the (K, N) of the weights. Checked once per process, thread count and argument.

    Raises:
        ConfigurationError: see `require_fixed_order`; or a measured row differs.
    """
    import torch  # noqa: PLC0415

    kernels, attention = ("torch", "sdpa") if device == "cpu" else ("triton", "triton")
    require_fixed_order(device, dtype, attention=attention, kernels=kernels)
    ways = _Ways(dtype=dtype, device=device, kernels=kernels, attention=attention)
    _measure(ways, tuple(sorted(set(products))), head_dim, torch.get_num_threads())


class _Ways(NamedTuple):
    """How and where the probed arithmetic is carried out."""

    dtype: str
    device: str
    kernels: str
    attention: str


@cache
def _measure(
    ways: _Ways, products: tuple[tuple[int, int], ...], head_dim: int, threads: int
) -> None:
    import torch  # noqa: PLC0415

    warm_vector_math()
    with torch.inference_mode():
        for what, function, x, pieces in _probes(ways, products):
            whole = function(x)
            for first, rows in pieces:
                part = function(x[first : first + rows].clone())
                if not torch.equal(part, whole[first : first + rows]):
                    raise _dependent(f"{what} in {ways.dtype}", rows, _ALL_ROWS, threads)
        attend, total = _attention_probe(ways, head_dim)
        whole = attend(0, total)
        for first, rows in _PROBED_CHUNKS:
            if not torch.equal(attend(first, rows), whole[first : first + rows]):
                raise _dependent(
                    f"attention in {ways.dtype} from position {first}", rows, total, threads
                )


def _dependent(what: str, rows: int, all_rows: int, threads: int) -> ConfigurationError:
    return ConfigurationError(
        f"batch_invariant: {what} gives other bits on {rows} rows than on {all_rows}, with "
        f"{threads} threads. Turn batch_invariant off on this machine, or use another torch build"
    )


class _Probe(NamedTuple):
    """`function` of all of `rows`, to be compared with that of `pieces`: (first, count) of rows."""

    what: str
    function: Callable[[torch.Tensor], torch.Tensor]
    rows: torch.Tensor
    pieces: Sequence[tuple[int, int]]


def _probes(ways: _Ways, products: Sequence[tuple[int, int]]) -> Iterator[_Probe]:
    """Everything that a layer applies to rows."""
    import torch  # noqa: PLC0415
    import torch.nn.functional as F  # noqa: PLC0415

    from engine.kernels import kernels_called  # noqa: PLC0415
    from engine.layers.activation import ACTIVATIONS  # noqa: PLC0415
    from engine.layers.rotary import inverse_frequencies, rotary_table  # noqa: PLC0415

    generator = torch.Generator().manual_seed(0)
    kernels, dtype = kernels_called(ways.kernels), getattr(torch, ways.dtype)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(ways.device, dtype)

    for inputs, outputs in products:
        weight, bias = draw(outputs, inputs), draw(outputs)
        what, rows = f"a product of K={inputs} N={outputs}", draw(_ALL_ROWS, inputs)
        yield _Probe(what, partial(kernels.linear, weight=weight), rows, _PIECES)
        biased = partial(kernels.linear, weight=weight, bias=bias)
        yield _Probe(f"{what} and bias", biased, rows, _PIECES)
    for width in sorted({inputs for inputs, _ in products}):
        weight, bias, rows = draw(width), draw(width), draw(_ALL_ROWS, width)
        norm = partial(kernels.rms_norm, weight=weight, eps=1e-6)
        yield _Probe("RMS norm", norm, rows, _PIECES)
        layer_norm = partial(F.layer_norm, normalized_shape=(width,), weight=weight, bias=bias)
        yield _Probe("layer norm", layer_norm, rows, _PIECES)
    for name, function in ACTIVATIONS.items():
        yield _Probe(name, function, draw(_ALL_ROWS, _ODD_WIDTH), _SINGLE_ROWS)
    frequencies = inverse_frequencies(_ODD_WIDTH, 10_000.0).to(ways.device)

    def angles(positions: torch.Tensor) -> torch.Tensor:
        return torch.cat(rotary_table(positions, frequencies, dtype), dim=-1)

    places = torch.arange(_ALL_ROWS, device=ways.device)
    yield _Probe("rotary angles", angles, places, _SINGLE_ROWS)


def _attention_probe(ways: _Ways, width: int) -> tuple[Callable[[int, int], torch.Tensor], int]:
    """A function (start, rows) -> attention of that piece of a prompt, and the prompt's length."""
    import torch  # noqa: PLC0415

    from engine.attention import paged_attention  # noqa: PLC0415

    heads, kv_heads, total, block_size = 4, 2, 600, 16
    generator, device = torch.Generator().manual_seed(1), torch.device(ways.device)
    q, k, v = (
        torch.randn(total, count, width, generator=generator).to(device, getattr(torch, ways.dtype))
        for count in (heads, kv_heads, kv_heads)
    )
    blocks = torch.arange(-(-total // block_size), device=device)[None]
    cache = [k.new_zeros(blocks.numel() * block_size, kv_heads, width) for _ in "kv"]

    def attend(start: int, rows: int) -> torch.Tensor:
        piece = slice(start, start + rows)
        slots = torch.arange(start, start + rows, device=device)
        attended: torch.Tensor = paged_attention(
            *(heads[piece] for heads in (q, k, v)),
            *cache,
            torch.tensor([0, rows], device=device),
            torch.tensor([start], device=device),
            blocks,
            slots,
            block_size=block_size,
            scale=width**-0.5,
            causal=True,
            window=0,
            backend=ways.attention,
            batch_invariant=True,
        )
        return attended

    return attend, total
