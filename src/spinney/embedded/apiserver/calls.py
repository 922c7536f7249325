"""Calls: a request once its path is understood, and what its query and body ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import yaml

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    bad_request,
    forbidden_field,
    invalid_options,
    too_long,
    unsupported,
    unsupported_media_type,
)
from spinney.embedded.apiserver.http import json_bodies, protobuf
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.kube.client.transport import Request, User

JSON_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
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
    duplicates: list[str] = field(default_factory=list)
    # Of a deletion, from its body or its query.
    options: Json = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Where the object lies in the kind's table."""
        return self.kind.key(self.namespace, self.name)

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be kept."""
        return bool((self.options if self.verb in ("delete", "deletecollection") else self.query).get("dryRun"))

    @property
    def manager(self) -> str:
        """The field manager, by name or else by the client's program."""
        named = self.query.get("fieldManager", "")
        return named or self.request.headers.get("user-agent", "").partition("/")[0] or "unknown"

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        return self.query.get("fieldValidation") or "Warn"

    def check_options(self) -> None:
        """Refuse options of a write that make no sense."""
        query = self.query
        if not query:
            return
        found: list[FieldError] = []
        if query.get("dryRun") not in (None, "All"):
            found.append(unsupported("dryRun", [query["dryRun"]], ("All",)))
        manager = query.get("fieldManager", "")
        if len(manager) > 128:
            found.append(too_long("fieldManager", 128))
        strange = next((at for at, letter in enumerate(manager) if not letter.isprintable()), None)
        if strange is not None:
            why = f"invalid character U+{ord(manager[strange]):04X} (at position {strange})"
            found.append(FieldError("FieldValueInvalid", "fieldManager", f"Invalid value: {_quoted(manager)}: {why}"))
        if query.get("fieldValidation") not in (None, "", "Strict", "Warn", "Ignore"):
            found.append(unsupported("fieldValidation", query["fieldValidation"], ("", "Ignore", "Strict", "Warn")))
        if self.verb == "patch" and "force" in query and "apply-patch" not in media_type(self.request):
            found.append(forbidden_field("force", "may not be specified for non-apply patch"))
        if found:
            name = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}.get(self.verb)
            raise invalid_options(name or "DeleteOptions", found)


def _quoted(text: str) -> str:
    """Text as Go's %q writes it."""
    named = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
    letters = (letter if letter.isprintable() else named.get(letter, f"\\x{ord(letter):02x}") for letter in text)
    return '"' + "".join(letters) + '"'


def flag(query: Mapping[str, str], name: str) -> bool:
    """A yes or no of a query: whatever is not `false` or `0` is a yes."""
    return name in query and query[name] not in ("false", "0")


def number(text: str) -> int:
    """A number of a query; no text is none."""
    try:
        return int(text or 0)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


@lru_cache(maxsize=4096)
def split_path(path: str) -> tuple[str, str, str, str, str, str] | None:
    """Group, version, namespace, plural, name and subresource of a resource path."""
    parts = path.strip("/").split("/")
    if is_old_watch(parts):
        parts.remove("watch")
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


def is_old_watch(parts: list[str]) -> bool:
    """Whether a path is one of those that watch by a prefix, as clients did before `?watch=true`."""
    return parts[2:3] == ["watch"] if parts[0] == "api" else parts[3:4] == ["watch"]


_METHODS = {
    "GET": ("list", "get"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}


def verb_of(method: str, name: str, query: Mapping[str, str]) -> str:
    """The RBAC verb of a request."""
    verb = _METHODS.get(method, ("", ""))[bool(name)]
    return "watch" if verb == "list" and flag(query, "watch") else verb


def media_type(request: Request) -> str:
    """The content type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip() or "application/json"


def read_body(call: Call, kind: Kind | None = None) -> Json:
    """The object in the body, whatever language it is written in."""
    form = media_type(call.request)
    if form not in JSON_TYPES:
        raise unsupported_media_type(JSON_TYPES)
    body = call.request.body
    wanted = kind.kind if kind is not None else body_kind(call)
    try:
        document = parse(body, form) if call.kind.custom is None else parse(body, form, json_bodies.untyped)
        if document is None and (body or "yaml" in form) and call.kind.custom is None:
            document = {}
        if not isinstance(document, dict):
            raise Unreadable(
                f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_name(document)} "
                'into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
                'Kind string "json:\\"kind,omitempty\\"" }'
            )
        for key in ("apiVersion", "kind"):
            if not isinstance(document.get(key, ""), str | None):
                raise Unreadable(
                    f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_name(document[key])} "
                    f"into Go struct field .{key} of type string"
                )
        if str(document.get("apiVersion")).count("/") > 1:
            raise Unreadable(f"unexpected GroupVersion string: {document['apiVersion']}")
        if call.kind.custom is not None and not call.subresource and not document.get("kind"):
            raise Unreadable(f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'")
    except Unreadable as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {wanted}): {error} ({json_bodies.summary(body)})"
        ) from None
    return document


def body_kind(call: Call) -> str:
    """The kind that a body must be of."""
    return call.kind.subresources[call.subresource].kind if call.subresource else call.kind.kind


class Unreadable(Exception):
    """A body that does not parse."""


def parse(body: bytes, kind: str, decode: Callable[[bytes], Any] = msgspec.json.decode) -> Any:
    """Plain data from JSON, YAML or Kubernetes' protobuf."""
    if kind == "application/vnd.kubernetes.protobuf":
        if not body.startswith(protobuf.MAGIC):
            raise Unreadable("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
        return protobuf.decode(body)
    try:
        if "yaml" in kind:
            # Of several documents, the first counts.
            return whole_numbers(next(yaml.load_all(body, Loader=_Loader), None))
        return decode(body)
    except msgspec.DecodeError:
        raise Unreadable(f"couldn't get version/kind; json parse error: {json_bodies.explain(body)}") from None
    except yaml.MarkedYAMLError as error:
        raise Unreadable(f"yaml: {_line(error)}{error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise Unreadable("couldn't get version/kind; json parse error: exceeded max depth") from None


def _line(error: yaml.MarkedYAMLError) -> str:
    """Where Go's parser sees an error: lines count from zero, but for the scanner, and the first is not told."""
    line = error.problem_mark.line if error.problem_mark is not None else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    elif not line and error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


class _Loader(yaml.CSafeLoader):
    """YAML as JSON sees it: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def whole_numbers(value: Any) -> Any:
    """Values that were read without a type in mind, as JSON writes them: keys are strings, and 1.0 is 1."""
    if isinstance(value, dict):
        return {str(key): whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def repeated_keys(body: bytes) -> list[str]:
    """Keys that a YAML document gives twice, in the words of Go's parser."""
    found: list[str] = []

    def walk(node: yaml.Node | None) -> None:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen:
                    found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
                walk(value)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                walk(item)

    walk(next(yaml.compose_all(body, Loader=_Loader), None))
    return found


def json_name(value: Any) -> str:
    """What Go's decoder calls a value."""
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", type(None): "null"}
    return names.get(type(value), "object")
