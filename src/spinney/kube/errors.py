"""Errors of the API server and of the connection to it, as exceptions."""

from __future__ import annotations

from spinney.api.meta import Json, Struct


class StatusCause(Struct, frozen=True):
    """One field that was wrong."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct, frozen=True):
    """The object that a Status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, frozen=True):
    """The body of every error response of Kubernetes."""

    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails = StatusDetails()
    code: int = 0


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message or status.reason or f"HTTP {status.code}")
        self.status = status

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """Kubernetes' machine-readable reason."""
        return self.status.reason


class NotFound(ApiError):
    """404: the object, or its kind, is not there."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Conflict(ApiError):
    """409 on a write whose precondition no longer holds."""


class Invalid(ApiError):
    """422 or 400: the object is not acceptable."""


class Gone(ApiError):
    """410: the resource version is too old to watch from, or a list's continuation expired."""


class Forbidden(ApiError):
    """403: not allowed, or refused by admission."""


class TooManyRequests(ApiError):
    """429: retry later, or an eviction that a disruption budget does not allow."""


class Unauthorized(ApiError):
    """401: the server does not accept our credentials."""


class CannotStart(Exception):
    """A component is configured to use something that the cluster lacks; the process exits with this code."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ConnectionLost(Exception):
    """No response arrived: the write may or may not have happened."""


class NotSent(ConnectionLost):
    """The server was not reached: nothing has happened."""


class Untrusted(NotSent):
    """The server's certificate, or ours, is not accepted; a retry does not help."""


class NotLeader(Exception):
    """A write was stopped because our lease may have expired."""


def error_for(status: Status) -> ApiError:
    """The exception for an error response."""
    if status.code == 409:
        return AlreadyExists(status) if status.reason == "AlreadyExists" else Conflict(status)
    by_code: dict[int, type[ApiError]] = {
        400: Invalid,
        401: Unauthorized,
        403: Forbidden,
        404: NotFound,
        410: Gone,
        422: Invalid,
        429: TooManyRequests,
    }
    return by_code.get(status.code, ApiError)(status)


def status_body(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    """A Status as plain data, as a server returns it."""
    body: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        body["details"] = details
    body["code"] = code
    return body
