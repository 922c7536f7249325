"""Decode a body as an object of its kind: check types, drop unknown fields, set the namespace."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import CannotBeHandled, bad_request, internal
from spinney.embedded.apiserver.http import bodies
from spinney.embedded.apiserver.http.bodies import repeated_keys
from spinney.embedded.apiserver.http.content_types import BODY_TYPES, media_type
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.conform import conform
from spinney.embedded.apiserver.schema.misfit import Misfit, wrong_type
from spinney.embedded.apiserver.write.type_meta import check_type


def check_duplicates(call: Call, document: Json) -> None:
    """Find duplicate fields of a body; a body as long as its own encoding has none."""
    body, form = call.request.body, media_type(call.request)
    if call.field_validation == "Ignore" or len(encode(document)) == len(body):
        return
    if form == BODY_TYPES[0] or form.endswith("-patch+json"):
        call.duplicates = [f'duplicate field "{path}"' for path in bodies.duplicates(body)]
    elif form == BODY_TYPES[1]:
        call.duplicates = repeated_keys(body)


def decoded(call: Call, document: Json, old: Json | None = None) -> Json:
    """The body as an object of the kind: types checked, unknown fields reported or dropped, nulls removed.

    What it shares with `old`, the object before a change, is as it should be.
    """
    kind = call.kind
    if kind.custom is not None and kind.custom.versions[kind.version].warning:
        call.warnings.append(kind.custom.versions[kind.version].warning)
    check_type(document, call.kind, call.verb)
    try:
        document, unknown = _conformed(kind, document, old)
    except Misfit as misfit:
        raise CannotBeHandled(kind.kind, kind.version, kind.kind, str(misfit)) from None
    if unknown or call.duplicates:
        _unknown_fields(call, unknown)
    return document


def _conformed(kind: Kind, document: Json, old: Json | None) -> tuple[Json, list[str]]:
    """The object in the normal form of its kind, and the fields that the kind does not have."""
    if not isinstance(document.get("metadata"), dict | None):
        raise wrong_type("metadata", "an object", document["metadata"])
    # Kind and version come first, wherever they are in the body.
    document = {"kind": "", "apiVersion": "", **document}
    document["kind"], document["apiVersion"] = kind.kind, kind.api_version
    document["metadata"] = dict(document.get("metadata") or {})
    if kind.custom is not None:
        return kind.custom.conform(kind.version, document, old)
    conformed, unknown = conform(document, kind.group, kind.version, kind.kind, old)
    if conformed is not document:
        conformed["metadata"] = dict(conformed.get("metadata") or {})
    return conformed, unknown


def _unknown_fields(call: Call, unknown: list[str]) -> None:
    is_yaml = media_type(call.request) == BODY_TYPES[1]
    missing = [f'unknown field "{path}"' for path in (sorted(unknown) if is_yaml else unknown)]
    problems = call.duplicates + missing if is_yaml else missing + call.duplicates
    if call.field_validation == "Strict" and is_yaml and call.duplicates:
        # The YAML parser reports them together.
        problems = ["yaml: unmarshal errors:\n  " + "\n  ".join(call.duplicates), *missing]
    call.duplicates = []
    del problems[bodies.MOST_STRICT_ERRORS :]
    if call.field_validation == "Strict":
        kind = call.kind
        problem = "strict decoding error: " + ", ".join(problems)
        raise CannotBeHandled(kind.kind, kind.version, kind.kind, problem)
    if call.field_validation == "Warn":
        call.warnings.extend(problems)


def decoded_after_webhooks(call: Call, mutated: Json) -> Json:
    """An object from webhooks, decoded as its kind; unknown fields are dropped silently."""
    quiet = replace(call, query={**call.query, "fieldValidation": "Ignore"}, warnings=[])
    try:
        document = decoded(quiet, mutated)
    except CannotBeHandled as error:
        raise (bad_request(error.problem) if error.other_kind else internal(error.problem)) from None
    set_namespace(call, document["metadata"])
    return document


def set_namespace(call: Call, metadata: Json) -> None:
    namespace = metadata.get("namespace", "")
    if call.kind.namespaced:
        if namespace and namespace != call.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = call.namespace
    elif namespace:
        raise bad_request("namespace is not allowed on this type" if not call.namespace else "namespace mismatch")
