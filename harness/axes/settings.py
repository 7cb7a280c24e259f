"""What is not an axis of the lattice but must have acted all the same: executor, stream policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.axes.evidence import Evidence, Json, explain


def inline(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with every rank in one process, where streams and ranks are ours to set at all.

    A system that has no stream policy has no executor to choose either: it is run as it comes.
    """
    return {**settings, "executor": "inline"} if "stream_policy" in settings else dict(settings)


def _executor(value: str, evidence: Evidence) -> str | None:
    pids = {int(rank["pid"]) for rank in evidence.ranks}
    expected = len(evidence.ranks) if value == "processes" else 1
    if len(pids) == expected:
        return None
    return f"{len(evidence.ranks)} ranks ran in {len(pids)} processes, expected {expected}"


def _stream_policy(value: str, evidence: Evidence) -> str | None:
    seen = str(evidence.value("stream_policy"))
    # A policy is written NAME or NAME(ARGUMENT); a system may spell an argument out, such as the
    # number of the last rank.
    if seen.split("(")[0] == value.split("(")[0]:
        return None
    return f"the streams ran under {seen}"


_CHECKS: Mapping[str, Callable[[str, Evidence], str | None]] = {
    "executor": _executor,
    "stream_policy": _stream_policy,
}


def setting_witnessed(name: str, value: str, witness: Mapping[str, Json]) -> str | None:
    """None when the setting took effect or leaves no trace to check; else why it did not."""
    check = _CHECKS.get(name)
    if check is None:
        return None
    reason = explain(lambda evidence: check(value, evidence), witness)
    return None if reason is None else f"{name}={value} did not take effect: {reason}"
