"""Errors as clients see them, in the shape of OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """Becomes `{"error": {"message", "type", "param", "code"}}` with an HTTP status.

    `param` names the parameter at fault, `code` the kind of mistake, for a program.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers = dict(headers or {})

    @property
    def type(self) -> str:
        """OpenAI's coarse kind, which follows from the status."""
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"

    def to_json(self) -> dict[str, Any]:
        """The response's body."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> ApiError:
    """A mistake of the client's: 400."""
    return ApiError(400, message, code=code, param=param)
