"""Get and list, with selectors, paging and earlier versions."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call, number, version_number
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import (
    FieldError,
    Refusal,
    bad_request,
    expired,
    forbidden_field,
    invalid_options,
    not_found,
    unsupported,
)
from spinney.embedded.apiserver.http.content_types import JSON, LISTS, PARTIAL, PARTIALS, representation
from spinney.embedded.apiserver.kubectl import table
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.store.conversion import encoded_for
from spinney.embedded.apiserver.store.store import Item, TooOld
from spinney.kube.client.transport import Response

_TOO_OLD_PAGE = (
    "The continue token is too old: start a new list, or go on with the token in this response. Objects that were "
    "created, changed or deleted since the first page may then be listed twice or be missing."
)


# Larger lists are answered in parts of about this many bytes or objects.
_MOST_AT_ONCE = 2_000
_MOST_BYTES_AT_ONCE = 8 << 20
_PART = 256 << 10
_PART_ITEMS = 400


def get(core: Core, call: Call) -> Response:
    """Get one object by name."""
    wanted = representation(call.request.headers.get("accept", ""))
    check_version(core, call.query.get("resourceVersion", ""))
    item = core.store.get(call.kind.table, call.key)
    if item is None:
        raise not_found(call.kind, call.name)
    if wanted == PARTIALS:
        raise _wrong_form(wanted)
    return object_response(core, call, item)


def _wrong_form(wanted: str) -> Refusal:
    """406: a list was asked for where there is one object, or the reverse."""
    what = "not a list" if wanted == PARTIALS else "a list"
    return Refusal(406, "NotAcceptable", f"you requested {wanted}, but the requested object is {what}")


def object_response(core: Core, call: Call, item: Item, status: int = 200) -> Response:
    """Answer with one object in the form that the client accepts."""
    wanted = representation(call.request.headers.get("accept", ""))
    if wanted == "Table":
        body = table.of_item(core, call, item, include_columns=True)
    elif wanted in (PARTIAL, PARTIALS):
        body = table.partial(item)
    else:
        body = encoded_for(call.kind, item)
    return Response(status, body, JSON)


def matcher(call: Call) -> Callable[[Item], bool] | None:
    """A predicate for the call's selectors and name; None if everything matches."""
    labels = selectors.parse_labels(call.query.get("labelSelector", ""))
    tests = field_tests(call.kind, call.query.get("fieldSelector", ""))
    if call.name:
        tests = (*tests, ("metadata.name", True, call.name))
    if not labels and not tests:
        return None
    check_fields = selectors.field_matcher(tests)

    def passes(item: Item) -> bool:
        if labels and not selectors.matches(labels, item.labels):
            return False
        return not tests or check_fields(_all_fields(item))

    return passes


def _all_fields(item: Item) -> Mapping[str, str]:
    return {**item.fields, "metadata.name": item.name, "metadata.namespace": item.namespace}


def field_tests(kind: Kind, text: str) -> tuple[selectors.FieldTest, ...]:
    """The conditions of a field selector, if the kind has such selectable fields."""
    tests = []
    for name, equal, value in selectors.parse_fields(text):
        stored_name = selectable_fields.stored_name(kind, name)
        if not stored_name:
            raise bad_request(selectable_fields.not_selectable(kind, name))
        tests.append((stored_name, equal, value))
    return tuple(tests)


def list_(core: Core, call: Call) -> Response:
    """List all objects that match, or a page of them."""
    page, version = _select(core, call)
    limit = max(number(call.query.get("limit", "")), 0)
    number(call.query.get("timeoutSeconds", ""))
    if call.query.get("resourceVersion") == "0" and "continue" not in call.query:
        # With any version allowed, the list is answered whole, from memory.
        limit = 0
    if call.query.get("sendInitialEvents"):
        raise invalid_options(
            "ListOptions", [forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")]
        )
    shown, rest = (page[:limit], page[limit:]) if limit else (page, [])
    metadata: Json = {"resourceVersion": str(version)}
    if rest:
        metadata["continue"] = _token(version, shown[-1].key)
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(rest)
    return list_response(core, call, shown, metadata)


def list_response(core: Core, call: Call, shown: list[Item], metadata: Json) -> Response:
    """Answer with a list of objects in the form that the client accepts."""
    wanted = representation(call.request.headers.get("accept", ""), LISTS)
    if wanted == "Table":
        head = table.head(call.kind, metadata, include_columns=True)
        return _joined(head, table.rows_of(core, call, shown), shown)
    if wanted == PARTIAL:
        raise _wrong_form(wanted)
    if wanted == PARTIALS and not shown:
        empty = {"kind": PARTIALS, "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": None}
        return Response(200, encode(empty), JSON)
    if wanted == PARTIALS:
        note = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return _joined(_before_items(note), (table.partial(item) for item in shown), shown)
    if call.kind.custom is not None:
        # Lists of custom resources contain an empty `continue`.
        metadata = {"continue": "", **metadata}
    note = {"kind": call.kind.list_kind, "apiVersion": call.kind.api_version, "metadata": metadata}
    return _joined(_before_items(note), _bodies(call.kind, shown), shown)


def _bodies(kind: Kind, items: Iterable[Item]) -> Iterable[bytes]:
    """The bodies of a list's objects; built-in ones do not repeat their kind."""
    prefix = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()
    bodies = (encoded_for(kind, item) for item in items)
    if kind.custom is not None:
        return bodies
    return (b"{" + body[len(prefix) :] if body.startswith(prefix) else body for body in bodies)


def _before_items(note: Json) -> bytes:
    return encode(note)[:-1] + b',"items":['


def _joined(head: bytes, bodies: Iterable[bytes], shown: list[Item]) -> Response:
    """The list as one body; a large one in parts, so that it is never in memory whole, and others get their turn."""
    if len(shown) <= _MOST_AT_ONCE and sum(len(item.body) for item in shown) <= _MOST_BYTES_AT_ONCE:
        return Response(200, head + b",".join(bodies) + b"]}", JSON)
    return Response(200, b"", JSON, _in_parts(head, bodies))


async def _in_parts(head: bytes, bodies: Iterable[bytes]) -> AsyncIterator[bytes]:
    part, size, comma = [head], 0, b""
    for body in bodies:
        part += (comma, body)
        size += len(body)
        comma = b","
        if size > _PART or len(part) > _PART_ITEMS:
            yield b"".join(part)
            part, size = [], 0
            await asyncio.sleep(0)
    yield b"".join((*part, b"]}"))


def _select(core: Core, call: Call) -> tuple[list[Item], int]:
    store = core.store
    table_ = store.table(call.kind.table)
    passes = matcher(call)
    token = call.query.get("continue", "")
    if token:
        _check_match(call.query.get("resourceVersion", ""), call.query.get("resourceVersionMatch", ""), token)
        version, after = _read_token(token)
        if call.query.get("resourceVersion") not in (None, "", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        if version > store.version:
            raise bad_request(f"invalid continue token: resource version {version} is larger than {store.version}")
        try:
            past = table_.at(version) if 0 <= version < table_.last else None
            version = version if version >= 0 else store.version
        except TooOld:
            refusal = expired(_TOO_OLD_PAGE)
            refusal.metadata = {"continue": _token(-1, after)}
            raise refusal from None
    else:
        after = ""
        version, past = _wanted_version(core, call)
    if past is None:
        items: Iterable[Item] = table_.range(call.namespace, after)
    else:
        prefix = f"{call.namespace}/" if call.namespace else ""
        items = (past[key] for key in sorted(past) if key > after and key.startswith(prefix))
    return [item for item in items if passes is None or passes(item)], version


def _wanted_version(core: Core, call: Call) -> tuple[int, dict[str, Item] | None]:
    text, match = call.query.get("resourceVersion", ""), call.query.get("resourceVersionMatch", "")
    _check_match(text, match)
    current = core.store.version
    version = check_version(core, text)
    if match != "Exact":
        return current, None
    try:
        return version, core.store.table(call.kind.table).at(version)
    except TooOld:
        raise expired("The resourceVersion for the provided list is too old.") from None


def _check_match(version: str, match: str, token: str = "") -> None:
    if not match:
        return
    field = "resourceVersionMatch"
    errors: list[FieldError] = []
    if not version:
        errors.append(forbidden_field(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if token:
        errors.append(forbidden_field(field, "resourceVersionMatch is forbidden when continue is provided"))
    elif version and match not in ("Exact", "NotOlderThan"):
        errors.append(unsupported(field, match, ("Exact", "NotOlderThan", "")))
    elif match == "Exact" and version == "0":
        errors.append(forbidden_field(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if errors:
        raise invalid_options("ListOptions", errors)


def check_version(core: Core, text: str) -> int:
    """The resource version of a query as a number; a version from the future is refused."""
    version = version_number(text)
    if version > core.store.version:
        message = f"Too large resource version: {version}, current: {core.store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise Refusal(504, "Timeout", f"Timeout: {message}", {"causes": [cause], "retryAfterSeconds": 1})
    return version


def _token(version: int, key: str) -> str:
    token = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": key})
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


class _Token(msgspec.Struct):
    """The place in a list where its next page begins."""

    rv: int
    start: str


def _read_token(token: str) -> tuple[int, str]:
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Token)
        return decoded.rv, decoded.start
    except msgspec.ValidationError:
        why = "server does not recognize this encoded version "
        raise bad_request(f"invalid continue token: continue key is not valid: {why}") from None
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
