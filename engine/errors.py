"""Every exception the engine raises on purpose.

EngineError
|-- ConfigurationError      the configuration cannot be run (start-up)
|   |-- UnsupportedTaskError
|   |-- UnsupportedModelError
|   `-- CompilerUnavailableError
|-- CheckpointError         the files on disk are not the model they claim to be
|-- RequestError            one request is refused; every other request is untouched
|-- PlanError               a replayed plan does not fit the requests it is replayed on
|-- LedgerError             our bug: an owner's ledger does not balance
`-- WorkerError             a rank died, hung or raised
"""

from __future__ import annotations


class EngineError(Exception):
    """Root of the tree; catch this to catch everything the engine raises on purpose."""


class ConfigurationError(EngineError):
    """The configuration cannot be run; raised at start-up, before any weight is read."""


class UnsupportedTaskError(ConfigurationError):
    """A task was selected that the model does not declare or the runner does not know."""


class UnsupportedModelError(ConfigurationError):
    """The checkpoint names an architecture the engine has no model for."""


class CompilerUnavailableError(ConfigurationError):
    """`compiled` was asked for and no working compiler was found; never silently eager."""


class CheckpointError(EngineError):
    """Weights or configuration files are missing, truncated, unexpected or not finite."""


class RequestError(EngineError):
    """One request is refused; the engine and every other request go on."""


class PlanError(EngineError):
    """A recorded plan was replayed on requests it does not describe."""


class LedgerError(EngineError):
    """An ownership ledger does not balance: a bug in the engine, never the user's fault."""


class WorkerError(EngineError):
    """A rank died, hung past its timeout, or raised; carries the rank and its traceback."""
