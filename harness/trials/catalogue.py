"""From the catalogue to trials: which fault or control runs on which bench."""

from __future__ import annotations

from collections.abc import Sequence

from harness.controls.base import Control
from harness.faults.base import Fault
from harness.trials.kills import KillBudget, Task
from harness.trials.matrix import CLEAN


def kill_tasks(
    chosen: Sequence[Fault],
    controls: Sequence[Control],
    budget: KillBudget,
    seed: int,
    dtypes: Sequence[str],
) -> list[Task]:
    """The clean engine on every checkpoint and dtype first; what shares an engine, together."""
    faulty = {(f.checkpoint, dtype, f.axes) for f in chosen for dtype in dtypes}
    engines = sorted(faulty | {(c.checkpoint, c.dtype, ()) for c in controls})
    return [
        *(
            Task(
                name=CLEAN,
                plugin="",
                checkpoint=checkpoint,
                dtype=dtype,
                axes=axes,
                seed=seed,
                budget=budget,
            )
            for checkpoint, dtype, axes in engines
        ),
        *(
            Task(
                name=f.name,
                plugin=f.plugin,
                checkpoint=f.checkpoint,
                dtype=d,
                axes=f.axes,
                seed=seed,
                budget=budget,
            )
            for d in dtypes
            for f in sorted(chosen, key=lambda f: (f.checkpoint, f.axes))
        ),
        *(
            Task(
                name=c.name,
                plugin=c.plugin,
                checkpoint=c.checkpoint,
                dtype=c.dtype,
                seed=seed,
                budget=budget,
                is_control=True,
            )
            for c in sorted(controls, key=lambda c: (c.checkpoint, c.dtype))
        ),
    ]


def reasons(chosen: Sequence[Fault]) -> dict[tuple[str, str], str]:
    """Fault and dtype -> why it changes nothing there."""
    return {(f.name, dtype): why for f in chosen for dtype, why in f.equivalent}
