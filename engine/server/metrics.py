"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

_STEP_TOKENS = (1, 8, 32, 128, 512, 2048, 8192, 32768)
_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """Owns: a registry of its own, so several servers of one process do not mix. Thread-safe."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._answers = Counter(
            "parity_http_requests",
            "HTTP requests answered.",
            ["path", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "parity_http_request_seconds",
            "From the whole head of a request to its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._step_tokens = Histogram(
            "parity_step_tokens",
            "Tokens in one step of the engine.",
            buckets=_STEP_TOKENS,
            registry=registry,
        )
        self._prompts = Counter(
            "parity_prompts", "Prompts by what became of them.", ["outcome"], registry=registry
        )
        self._tokens = Counter(
            "parity_prompt_tokens", "Tokens of the prompts that were answered.", registry=registry
        )
        self._rebuilds = Counter(
            "parity_engine_rebuilds",
            "Engines started in place of one that failed.",
            registry=registry,
        )
        self._hazards = Counter(
            "parity_hazards",
            "Unordered conflicting buffer accesses: each is a bug of the engine.",
            registry=registry,
        )
        for outcome in ("answered", "refused", "aborted", "failed"):
            self._prompts.labels(outcome)

    def watch_queue(self, prompts: Callable[[], float], tokens: Callable[[], float]) -> None:
        """Where to read how much is unanswered at this moment."""
        Gauge(
            "parity_open_prompts", "Prompts waiting or running.", registry=self._registry
        ).set_function(prompts)
        Gauge(
            "parity_open_tokens",
            "Tokens of the prompts waiting or running.",
            registry=self._registry,
        ).set_function(tokens)

    def http_answered(self, path: str, status: int, seconds: float) -> None:
        """One HTTP request is through; `path` is a route's, never the client's."""
        self._answers.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def stepped(self, num_tokens: int) -> None:
        """The engine was given a step."""
        self._step_tokens.observe(num_tokens)

    def prompt_ended(self, outcome: str, num_tokens: int = 0) -> None:
        """A prompt was answered, refused, aborted or failed; tokens count when answered."""
        self._prompts.labels(outcome).inc()
        self._tokens.inc(num_tokens)

    def rebuilt(self) -> None:
        """A new engine took the place of one that failed."""
        self._rebuilds.inc()

    def found_hazards(self, number: int) -> None:
        """What the happens-before check of a run reported."""
        self._hazards.inc(number)

    def text(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)
