"""What holds between the prompts of one case: ranks, similarities, sides of a threshold.

A user of embeddings sees similarities and a user of a reranker sees an order and decisions, so
these are measured as such. Scores closer than two errors are a tie: either may come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.judge.metrics import rank_inversions, similarity_drift
from harness.judge.output import OutputKind, Outputs
from harness.judge.subject import Subject
from harness.record import Measurement


def measured(subject: Subject, a: Outputs, b: Outputs, bound: float) -> list[Measurement]:
    """Rank inversions of scores, or similarity drift of embeddings; empty for one prompt.

    `bound`: how far from float64 each answer may be, 0 where not a bit may differ.
    """
    if len(a) < 2 or subject.kind.token_level:
        return []
    if subject.kind is OutputKind.EMBEDDING:
        return [
            Measurement(
                metric="similarity_drift",
                value=similarity_drift(a, b),
                bound=bound,
                why=(
                    "largest change of a cosine between two prompts; errors of one bound in "
                    "unrelated directions change it by less than one, an error that all prompts "
                    "share by up to four"
                ),
            )
        ]
    if any(x.size != 1 for x in a):
        return []
    return [
        Measurement(
            metric="rank_inversions",
            value=float(rank_inversions(a, b, 2 * bound)),
            bound=0.0,
            why=f"pairs of prompts in another order; scores within {4 * bound:.3g} count as tied",
        )
    ]


def failures(measurements: Sequence[Measurement]) -> str:
    """What `measured` found beyond its bound, as words; empty when nothing is."""
    found = []
    for m in measurements:
        if not m.exceeded:
            continue
        if m.metric == "rank_inversions":
            found.append(f"{m.value:.0f} pairs of prompts change their order by score")
        if m.metric == "similarity_drift":
            found.append(
                f"a similarity of two prompts changes by {m.value:.3g}, allowed {m.bound:.3g}"
            )
    return "; ".join(found)


def crossings(
    subject: Subject, a: Outputs, b: Outputs, thresholds: Sequence[float]
) -> tuple[str, ...]:
    """Scores that lie on another side of a user's threshold, as one sentence each.

    Within the bound either side is as right as the other, so these are warnings: a decision that
    rests on a rounding, of which whoever set the threshold should know.
    """
    if subject.kind not in (OutputKind.SCORE, OutputKind.LOGIT):
        return ()
    found = []
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        for old, new in zip(x.float64.reshape(-1), y.float64.reshape(-1), strict=True):
            for threshold in thresholds:
                if (old >= threshold) != (new >= threshold):
                    found.append(
                        f"prompt {index}: {subject.kind} {old:.7g} on side A and {new:.7g} on side "
                        f"B, on either side of the threshold {threshold:g}"
                    )
    return tuple(found)
