"""Calls: a request once its path is understood, and what its query and body ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import yaml

from spinney.api.meta import Json
from spinney.embedded import protobuf
from spinney.embedded.errors import Refusal, bad_request, unsupported_media_type
from spinney.embedded.kinds import Kind
from spinney.kube.transport import Request, User

JSON_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
MAX_DEPTH = 500
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(slots=True)
class Call:
    """One verb on one resource, by one user."""

    verb: str
    kind: Kind
    namespace: str
    name: str
    subresource: str
    request: Request
    query: Mapping[str, str]
    user: User
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Where the object lies in the kind's table."""
        return self.kind.key(self.namespace, self.name)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be kept."""
        value = self.query.get("dryRun")
        if value not in (None, "", "All"):
            listed = 'Unsupported value: ["' + str(value) + '"]: supported values: "All"'
            raise Refusal(422, "Invalid", f' "" is invalid: dryRun: {listed}')
        return bool(value)

    @property
    def manager(self) -> str:
        """The field manager, by name or else by the client's program."""
        named = self.query.get("fieldManager", "")
        return named or self.request.headers.get("user-agent", "").partition("/")[0] or "unknown"

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        value = self.query.get("fieldValidation") or "Warn"
        if value not in ("Strict", "Warn", "Ignore"):
            supported = 'supported values: "Ignore", "Strict", "Warn"'
            raise Refusal(422, "Invalid", f' "" is invalid: fieldValidation: Unsupported value: "{value}": {supported}')
        return value


@lru_cache(maxsize=4096)
def split_path(path: str) -> tuple[str, str, str, str, str, str] | None:
    """Group, version, namespace, plural, name and subresource of a resource path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = ""
    name = rest[1] if len(rest) > 1 else ""
    return group, version, namespace, rest[0], name, "/".join(rest[2:])


_METHODS = {
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}


def verb_of(method: str, name: str, query: Mapping[str, str]) -> str:
    """The RBAC verb of a request."""
    verb = _METHODS.get(method, ("", ""))[bool(name)]
    if verb in ("list", "get") and query.get("watch") in ("true", "1"):
        return "watch"
    return verb


def media_type(request: Request) -> str:
    """The content type without its parameters."""
    return request.headers.get("content-type", "application/json").partition(";")[0].strip()


def read_body(call: Call) -> Json:
    """The object in the body, whatever language it is written in."""
    kind = media_type(call.request)
    if kind not in JSON_TYPES:
        raise unsupported_media_type(JSON_TYPES)
    document = parse(call.request.body, kind)
    if not isinstance(document, dict):
        raise bad_request(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {_go_type(document)} "
            'into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    return document


def parse(body: bytes, kind: str) -> Any:
    """Plain data from JSON, YAML or Kubernetes' protobuf."""
    if kind == "application/vnd.kubernetes.protobuf":
        return protobuf.decode(body)
    if not body:
        raise bad_request("couldn't get version/kind; json parse error: unexpected end of JSON input")
    try:
        if "yaml" in kind:
            return _no_dates(yaml.load(body, Loader=_Loader))
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except yaml.YAMLError as error:
        raise bad_request(f"error parsing YAML: {error}") from None
    except (RecursionError, ValueError):
        raise bad_request("couldn't get version/kind; json parse error: exceeded max depth") from None


class _Loader(yaml.CSafeLoader):
    """YAML as JSON sees it: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _no_dates(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _no_dates(item) for key, item in value.items()}
    return [_no_dates(item) for item in value] if isinstance(value, list) else value


def _go_type(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", type(None): "null"}
    return names.get(type(value), "object")
