"""The refusals of the API server, with Kubernetes' status codes, reasons and fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from spinney.api.meta import Json
from spinney.kube.errors import status_body


class Kind(Protocol):
    """The names of a kind that refusals use."""

    @property
    def group(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def qualified(self) -> str: ...


class Refusal(Exception):
    """A request that ends in an error Status."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: Json = {}

    def body(self) -> Json:
        """The Status to answer with."""
        body = status_body(self.code, self.reason, self.message, self.details)
        body["metadata"] = self.metadata
        if not self.reason:
            del body["reason"]
        if self.details == {}:
            body["details"] = {}
        return body


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field, as Kubernetes' `field.Error`."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def cause(self) -> Json:
        """The entry in `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, detail: str = "") -> FieldError:
    """A value that must be given."""
    return FieldError("FieldValueRequired", field, _with("Required value", detail))


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """A value that is not acceptable."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def omitted(field: str, detail: str) -> FieldError:
    """A value that is not acceptable and too long to show."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {detail}")


def forbidden_field(field: str, detail: str) -> FieldError:
    """A value that may not be given here."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def unsupported(field: str, value: Any, allowed: Sequence[str]) -> FieldError:
    """A value outside an enumeration."""
    supported = ", ".join(shown(item) for item in allowed)
    message = f"Unsupported value: {shown(value)}: supported values: {supported}"
    return FieldError("FieldValueNotSupported", field, message)


def one_of(field: str, value: Any, allowed: Sequence[str]) -> list[FieldError]:
    """The error of a value that is not an allowed one; none of a value that is."""
    return [] if value in allowed else [unsupported(field, value, allowed)]


def duplicate(field: str, value: Any) -> FieldError:
    """A value that may be given only once."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def not_found_field(field: str, value: Any) -> FieldError:
    """A reference inside the object to something that does not exist."""
    return FieldError("FieldValueNotFound", field, f"Not found: {shown(value)}")


def wrong_type(field: str, value: Any, detail: str) -> FieldError:
    """A value of the wrong JSON type."""
    return FieldError("FieldValueTypeInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def too_long(field: str, limit: int) -> FieldError:
    """A string past its limit."""
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    """A list past its limit."""
    detail = f"must have at most {limit} item{'s' if limit != 1 else ''}"
    return FieldError("FieldValueTooMany", field, f"Too many: {actual}: {detail}")


def shown(value: Any) -> str:
    """A value in an error message: as JSON."""
    if value is None:
        return "null"
    return msgspec.json.encode(value).decode()


def listed(words: Sequence[str]) -> str:
    """Words as Go prints a list of quoted strings."""
    return "[" + " ".join(map(shown, words)) + "]"


def _with(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def _details(kind: Kind, name: str) -> Json:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> Refusal:
    """404: no such object."""
    return Refusal(404, "NotFound", f'{kind.qualified} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str, *, going: bool) -> Refusal:
    """409: an object of that name exists, or is still being deleted."""
    message = f'{kind.qualified} "{name}" already exists'
    if going:
        message = f"object is being deleted: {message}"
    return Refusal(409, "AlreadyExists", message, _details(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> Refusal:
    """409: a precondition does not hold."""
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return Refusal(409, "Conflict", message, _details(kind, name))


def wrong_uid(kind: Kind, namespace: str, name: str, precondition: str, actual: str) -> Refusal:
    """409: an object of that name exists, but has another UID."""
    return conflict(
        kind,
        name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{kind.plural}/{namespace}/{name}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {precondition}, UID in object meta: {actual}",
    )


def forbidden(kind: Kind, name: str, why: str) -> Refusal:
    """403: admission or a rule of the kind refuses it."""
    named = f'{kind.qualified} "{name}"' if name else kind.qualified
    return Refusal(403, "Forbidden", f"{named} is forbidden: {why}", _details(kind, name))


def _summary(errors: Sequence[FieldError]) -> str:
    """All errors in one line, without repetitions."""
    lines = list(dict.fromkeys(map(str, errors)))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"


def invalid_object(kind: Kind, name: str, errors: Sequence[FieldError]) -> Refusal:
    """422: the object breaks rules of its kind."""
    summary = _summary(errors)
    # For a kind that two groups serve, the group that stores it is named.
    group = kind.table.rpartition("/")[0]
    details: Json = {"name": name, "group": group, "kind": kind.kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [error.cause() for error in errors]
    shown_kind = f"{kind.kind}.{group}" if group else kind.kind
    return Refusal(422, "Invalid", f'{shown_kind} "{name}" is invalid: {summary}', details)


def invalid_options(name: str, errors: Sequence[FieldError]) -> Refusal:
    """422: the options of a request break their rules."""
    summary = _summary(errors)
    details: Json = {"group": "meta.k8s.io", "kind": name, "causes": [error.cause() for error in errors]}
    return Refusal(422, "Invalid", f'{name}.meta.k8s.io "" is invalid: {summary}', details)


def not_served() -> Refusal:
    """404: there is no such resource."""
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def bad_request(message: str) -> Refusal:
    """400: the request is invalid."""
    return Refusal(400, "BadRequest", message)


class CannotBeHandled(Refusal):
    """400: a body that is not an object of the kind that the path takes."""

    def __init__(self, kind: str, version: str, wanted: str, problem: str, *, other_kind: bool = False) -> None:
        super().__init__(400, "BadRequest", f'{kind} in version "{version}" cannot be handled as a {wanted}: {problem}')
        self.problem = problem
        # Whether it is an object of another kind that is served.
        self.other_kind = other_kind


def method_not_allowed() -> Refusal:
    """405: the resource has no such verb."""
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media_type(allowed: Sequence[str]) -> Refusal:
    """415: a body with a content type that is not supported."""
    listed = ", ".join(allowed)
    return Refusal(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: " + listed,
    )


def expired(message: str) -> Refusal:
    """410: the version is older than the remembered events."""
    return Refusal(410, "Expired", message)


def too_many_requests(message: str, retry_after: int, causes: Sequence[Json]) -> Refusal:
    """429: come back later."""
    details: Json = {"causes": list(causes)}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return Refusal(429, "TooManyRequests", message, details)


def internal(message: str) -> Refusal:
    """500: a defect, or a required webhook that did not answer."""
    return Refusal(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def too_large(limit: int) -> Refusal:
    """413: a body past the limit."""
    return Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def too_many_values(count: int, limit: int) -> Refusal:
    """413: a body with more parts than the server handles in one turn."""
    why = f"it has at least {count} values, limit is {limit}"
    return Refusal(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def paths_too_long(limit: int) -> Refusal:
    """413: a body whose keys are so long that no message can name all of its fields."""
    why = f"the paths of its fields have more than {limit} characters"
    return Refusal(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
