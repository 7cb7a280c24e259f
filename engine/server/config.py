"""How the server listens and how much it takes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """How much may be unanswered at once, running included; more is refused with 429."""

    max_prompts: int = 4096
    max_tokens: int = 262_144

    def __post_init__(self) -> None:
        for name in ("max_prompts", "max_tokens"):
            _positive(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where to listen, under which name, and the limits of one HTTP request."""

    model_name: str
    """What clients call the model."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0: any free port."""
    queue: QueueLimits = field(default_factory=QueueLimits)
    max_body_bytes: int = 8 * 2**20
    max_inputs: int = 2048
    """Prompts in one HTTP request; OpenAI's limit."""
    shutdown_timeout_s: int = 120
    """How long a shutdown waits for what runs before it gives it up."""

    def __post_init__(self) -> None:
        for name in ("max_body_bytes", "max_inputs", "shutdown_timeout_s"):
            _positive(name, getattr(self, name))
        if not 0 <= self.port <= 65535:
            raise ConfigurationError(
                f"port={self.port} is not valid: expected 0 (any free one) to 65535"
            )
        if not self.model_name:
            raise ConfigurationError("model_name='' is not valid: expected what clients call it")


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise ConfigurationError(f"{name}={value} is not valid: expected at least 1")
