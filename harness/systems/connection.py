"""One server, asked with patience: key, TLS, time limits, and its own word on when to come back."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from harness.record import Json
from harness.systems.base import SystemFailed, SystemUnavailable

BUSY = (429, 503)
"""Status codes that ask for patience; everything else that is not 2xx is an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is and how it wants to be asked."""

    url: str
    api_key_env: str = "PARITY_API_KEY"
    """Environment variable that holds the key; it is never written anywhere."""
    verify: bool | str = True
    """Check the server's certificate; a path: against the authorities in that file."""
    timeout_s: float = 120.0
    tries: int = 5
    """Of a request that is answered with 429 or 503."""
    longest_wait_s: float = 60.0
    """Most that one `Retry-After` is waited for."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise SystemUnavailable(f"url={self.url!r}: expected http://HOST:PORT or https://...")
        if self.tries < 1 or self.timeout_s <= 0:
            raise SystemUnavailable(
                f"expected tries >= 1 and timeout_s > 0, got {self.tries} and {self.timeout_s}"
            )


class Connection:
    """Owns: the HTTP client, its connections and the key."""

    def __init__(
        self,
        address: Address,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        key = os.environ.get(address.api_key_env)
        self._address, self._sleep = address, sleep
        self._client = httpx.Client(
            base_url=address.url.rstrip("/"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            verify=address.verify,
            timeout=address.timeout_s,
            transport=transport,
        )

    def ask(self, path: str, body: Mapping[str, Json]) -> dict[str, Json]:
        """The answer, a JSON object. Raises SystemFailed saying what came instead."""
        for attempt in range(1, self._address.tries + 1):
            answer = self._post(path, body)
            if answer.status_code not in BUSY or attempt == self._address.tries:
                break
            self._sleep(self._wait(answer, attempt))
        if not answer.is_success:
            tries = f" after {attempt} tries" if attempt > 1 else ""
            raise SystemFailed(f"POST {path}: {answer.status_code}{tries}: {_message(answer)}")
        try:
            found = json.loads(answer.content)
        except ValueError as error:
            raise SystemFailed(f"POST {path}: the answer is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise SystemFailed(f"POST {path}: expected a JSON object, got {type(found).__name__}")
        return found

    def _post(self, path: str, body: Mapping[str, Json]) -> httpx.Response:
        try:
            return self._client.post(path, json=body)
        except httpx.TimeoutException as error:
            raise SystemFailed(
                f"POST {path}: no answer within {self._address.timeout_s:g} s ({error})"
            ) from error
        except httpx.HTTPError as error:
            raise SystemFailed(
                f"POST {path}: {self._address.url} cannot be reached: {error}"
            ) from error

    def _wait(self, answer: httpx.Response, attempt: int) -> float:
        """Seconds to wait: as the server says, else twice as long each time."""
        said = answer.headers.get("Retry-After", "")
        try:
            wanted = float(said)
        except ValueError:
            try:
                wanted = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
            except (TypeError, ValueError):
                wanted = 0.5 * 2**attempt
        return min(max(wanted, 0.0), self._address.longest_wait_s)

    def close(self) -> None:
        self._client.close()


def _message(answer: httpx.Response) -> str:
    """What the server says of an error, in one line."""
    try:
        told = json.loads(answer.content)
        error = told.get("error", told.get("message", told.get("detail", told)))
        text = error.get("message", error) if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        text = answer.text
    return " ".join(str(text).split())[:300] or "no message"
