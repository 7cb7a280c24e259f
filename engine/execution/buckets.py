"""The row counts that a graph is recorded for; every step is padded to one of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from engine.errors import ConfigurationError


def default_buckets(most: int) -> tuple[int, ...]:
    """8, 16, 32, then four to each doubling, up to the first of at least `most` rows.

    From 32 rows on, less than a fifth of a step is padding.
    """
    buckets, step = [8, 16, 32], 8
    while buckets[-1] < most:
        buckets.append(buckets[-1] + step)
        if buckets[-1] == 8 * step:
            step *= 2
    return reachable(buckets, most)


def reachable(buckets: Sequence[int], most: int) -> tuple[int, ...]:
    """The buckets that a step of at most `most` rows may need.

    Raises:
        ConfigurationError: the largest is too small for such a step.
    """
    if buckets[-1] < most:
        raise ConfigurationError(
            f"graph_buckets={tuple(buckets)}: a step may have {most} rows (the least of "
            "max_num_batched_tokens and max_num_seqs x max_model_len), more than the largest "
            f"bucket. Add a bucket of at least {most}, or lower the token budget"
        )
    return tuple(buckets[: bisect_left(buckets, most) + 1])


def bucket_of(buckets: Sequence[int], rows: int) -> int:
    """The smallest bucket that holds so many rows."""
    return buckets[bisect_left(buckets, rows)]
