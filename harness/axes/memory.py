"""Secondary axes of memory: prefix cache, KV pool, block size and staging buffers.

Their witnesses are the ledger's own counts (`memory` of a witness) and each rank's count of the
staging buffers it was handed.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.axes.base import Axis, CellLike, Plan, attested_batch_invariant
from harness.axes.evidence import Evidence
from harness.record import Tier

DEFAULT_BLOCK = "16"


def blocks(tokens: int, size: int) -> int:
    """KV blocks of `size` positions that so many tokens fill."""
    return -(-tokens // size)


def small_pool(lengths: Sequence[int], size: int) -> int:
    """Blocks of `kv_pool=small`: the longest prompt alone fits, with one to spare."""
    return max(blocks(n, size) for n in lengths) + 1


def block_size(cell: CellLike) -> int:
    """Token positions of a KV block of a cell."""
    return int(cell.get("block_size", DEFAULT_BLOCK))


CACHED_TASKS = ("embed", "score", "classify")
"""Tasks whose answer is pooled from the last row, in a decoder; the others read no prefix."""


def may_act(cell: CellLike, task: str) -> bool:
    """Whether the cell's prefix cache can act on a case of this task."""
    return cell.get("prefix_cache", "off") == "off" or task in CACHED_TASKS


def _hits(cell: CellLike, evidence: Evidence) -> str | None:
    hits = sum(evidence.memory("hit_tokens").values())
    if cell.get("prefix_cache", "off") == "off":
        return None if not hits else f"{hits} tokens came from the prefix cache, expected none"
    return None if hits else "no token came from the prefix cache"


def _hit_reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:
    del cell, lengths
    seen: set[str] = set()
    for step in plan:
        for name, start, count, _total in step:
            if int(count) and int(start) and str(name) not in seen:
                return None
            seen.add(str(name))
    return "no prompt of the plan begins behind a cached prefix"


PREFIX_CACHE = Axis(
    name="prefix_cache",
    values=("off", "on"),
    baseline="off",
    tier=Tier.REORDERED,
    meaning=(
        "Prompts that begin alike: computed each, or read from the cache by answers that are "
        "pooled from the last row (exact when both sides attest batch_invariant=on)."
    ),
    witness=_hits,
    reach=_hit_reach,
    exact_when=attested_batch_invariant,
    replans=True,
)


def _pressed(cell: CellLike, evidence: Evidence) -> str | None:
    short, lost = evidence.memory("short_steps"), sum(evidence.memory("preemptions").values())
    held, there = evidence.memory("peak_blocks"), evidence.memory("num_blocks")
    if held > there:
        return f"{held} blocks were held of {there}"
    if cell.get("kv_pool", "ample") == "ample":
        return None if not short else f"memory was short in {short} steps, {lost} preemptions"
    return None if short or lost else f"every prompt found room: at most {held} of {there} blocks"


def _pool_reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:
    del plan
    size = block_size(cell)
    wanted, there = sum(blocks(n, size) for n in lengths), small_pool(lengths, size)
    if wanted > there:
        return None
    return f"all prompts together need {wanted} blocks and the small pool has {there}"


KV_POOL = Axis(
    name="kv_pool",
    values=("ample", "small"),
    baseline="ample",
    tier=Tier.REORDERED,
    meaning=(
        "KV blocks for every prompt, or for little more than the longest: prompts wait, and "
        "running ones are preempted and computed again (exact with batch_invariant=on)."
    ),
    witness=_pressed,
    reach=_pool_reach,
    exact_when=attested_batch_invariant,
    replans=True,
)


def _tables(cell: CellLike, evidence: Evidence) -> str | None:
    size, tables = block_size(cell), evidence.memory("tables")
    if not tables:
        return "no prompt held a block"
    for name, (tokens, held) in tables.items():
        if held != blocks(tokens, size):
            return (
                f"{tokens} tokens of prompt {name} took {held} blocks, expected "
                f"{blocks(tokens, size)} of {size}"
            )
    return None


def _size_reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:
    del plan
    size, usual = block_size(cell), int(DEFAULT_BLOCK)
    if any(blocks(n, size) != blocks(n, usual) for n in lengths):
        return None
    return f"blocks of {size} and of {usual} cut prompts of {tuple(lengths)} tokens alike"


BLOCK_SIZE = Axis(
    name="block_size",
    values=(DEFAULT_BLOCK, "1", "8", "64"),
    baseline=DEFAULT_BLOCK,
    tier=Tier.EXACT,
    meaning="Token positions of a KV block. Where keys lie changes no arithmetic: not a bit may.",
    witness=_tables,
    reach=_size_reach,
)


def _staged(cell: CellLike, evidence: Evidence) -> str | None:
    used = max(evidence.counts("staging_slots"), default=0)
    if cell.get("buffers", "fenced") == "fenced":
        return None if used == 1 else f"a rank staged through {used} buffers, expected 1"
    return None if used > 1 else f"every rank staged through {used} buffer, expected several"


def _ring_idle(cell: CellLike) -> str | None:
    if cell.get("buffers", "fenced") == "fenced":
        return None
    if cell.get("async") != "async" and cell.get("pp", "1") == "1":
        return "with one step in flight a ring has one buffer (vary async or pp beside it)"
    return None


def _ring_reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:
    del cell, lengths
    return None if len(plan) > 1 else "the plan has a single step"


BUFFERS = Axis(
    name="buffers",
    values=("fenced", "ring"),
    baseline="fenced",
    tier=Tier.EXACT,
    meaning="Staging of a step's inputs: one buffer, or one for each step in flight.",
    witness=_staged,
    idle=_ring_idle,
    reach=_ring_reach,
    beside={"async": "async"},
    setting="inputs",
)

MEMORY = (PREFIX_CACHE, KV_POOL, BLOCK_SIZE, BUFFERS)
