"""What can go wrong with a checkpoint.

CheckpointError
+-- UnknownCheckpoint        the catalogue has no such name
+-- CheckpointUnavailable    it cannot be had here: no registry, or no consent to fetch
+-- CheckpointDamaged        what arrived or was made is not what was promised
"""

from __future__ import annotations


class CheckpointError(Exception):
    """Root of every error raised by `harness.checkpoints`."""


class UnknownCheckpoint(CheckpointError):  # noqa: N818 - reads as the condition, like its siblings
    """The catalogue has no checkpoint of that name."""


class CheckpointUnavailable(CheckpointError):  # noqa: N818
    """The checkpoint exists and cannot be had here; the message names what was tried."""


class CheckpointDamaged(CheckpointError):  # noqa: N818
    """The bytes that arrived, or the model made from them, are not the promised ones."""
