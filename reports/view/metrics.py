"""What each measured figure is, in a sentence: no name without its meaning at hand."""

from __future__ import annotations

from harness.record import Measurement
from reports.load import Run

MEANINGS = {
    "relative_l2": "Length of the difference of two rows, over the length of the reference row.",
    "scaled_abs": "Largest difference of two scores, over the score itself where that is above 1.",
    "matrix_relative_l2": "Relative L2 of the first n token rows as one matrix, for the worst n.",
    "one_minus_cosine": "1 - cosine of two rows: how far one turned, whatever its length.",
    "norm_ratio": "By what share of its length a row became longer or shorter.",
    "max_abs": "The largest difference of two numbers at the same place.",
    "max_ulp": "The largest distance of two numbers, counted in floating-point numbers between.",
    "differing_elements": "Numbers whose bits differ.",
    "similarity_drift": "The largest change of the cosine between two prompts of a case.",
    "rank_inversions": "Pairs of prompts that change places although they were no tie.",
    "oracle_error": "Distance of the judged side (B) from the float64 computation.",
    "oracle_error_reference": "Distance of the reference side (A) from the float64 computation.",
    "matrix_oracle_error": "oracle_error of the first n token rows as one matrix, worst n.",
    "matrix_oracle_error_reference": "The same of the reference side.",
    "movement": "How far float64's answer moves from the one question to the other.",
    "median_distance": "The median distance over the rows; the distance judged is the largest.",
    "own_distance": "Distance of the baseline deployment from itself, asked twice.",
    "crossed_threshold": "Scores that land on the other side of the threshold.",
}
HISTOGRAM = "elements off by "
"""Begins the classes of a histogram; they are drawn, and explained there."""


def meaning(metric: str) -> str:
    """Empty for a metric of a check that came from elsewhere."""
    return MEANINGS.get(metric, "")


def explained(run: Run) -> tuple[tuple[str, str], ...]:
    """Metric, meaning: of those that this run measured, in the order of the table."""
    measured = {m.metric for pair in run.pairs for m in pair.measurements if _named(m)}
    return tuple((name, told) for name, told in MEANINGS.items() if name in measured)


def _named(measurement: Measurement) -> bool:
    return not measurement.metric.startswith(HISTOGRAM)
