"""Reviews and token requests: answered from identities and rights, and not stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from spinney.api.meta import Json, encode
from spinney.api.times import rfc3339
from spinney.embedded.apiserver.access.authentication import Authenticator, user_info
from spinney.embedded.apiserver.access.credentials import ISSUER
from spinney.embedded.apiserver.access.rbac import attributes_of
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.errors import (
    FieldError,
    bad_request,
    conflict,
    invalid,
    invalid_object,
    not_found,
)
from spinney.embedded.apiserver.http.bodies import read_typed
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.store.store import load
from spinney.embedded.apiserver.write import managed_fields
from spinney.embedded.apiserver.write.managed_fields import Writer
from spinney.kube.client.transport import Response, User

_TOKEN = Kind.of("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", namespaced=True)
# What a token can be bound to.
_BINDABLE = {
    ("v1", "Pod"): Kind.of("", "v1", "Pod", "pods", namespaced=True),
    ("v1", "Secret"): Kind.of("", "v1", "Secret", "secrets", namespaced=True),
    ("v1", "Node"): Kind.of("", "v1", "Node", "nodes", namespaced=False),
}
_SHORTEST = 600
_DEFAULT = 3600


def _answer(access: Authenticator, call: Call, body: Json, status: Json) -> Response:
    kind = call.kind.subresources[call.subresource] if call.subresource else call.kind
    question = Kind.of(kind.group, kind.version, kind.kind, call.kind.plural, namespaced=bool(call.namespace))
    answer: Json = {"kind": kind.kind, "apiVersion": question.api_version, "metadata": {**(body.get("metadata") or {})}}
    if "spec" in body:
        # The client owns the fields that it sent, and nobody owns those that were filled in.
        answer["spec"] = body.get("asked", body["spec"])
        writer = Writer(call.manager, call.subresource, access.core.timestamp())
        managed_fields.record_creation(question, answer, writer)
        answer["spec"] = body["spec"]
    return Response(201, encode({**answer, "status": status}), JSON)


def _who_am_i(access: Authenticator, call: Call, body: Json) -> Response:
    return _answer(
        access, call, {"metadata": {"creationTimestamp": access.core.timestamp()}}, {"userInfo": user_info(call.user)}
    )


def _token_review(access: Authenticator, call: Call, body: Json) -> Response:
    token = str((body.get("spec") or {}).get("token", ""))
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    user = access.account_of_token(token)
    if user is None:
        return _answer(access, call, body, {"user": {}, "error": "invalid bearer token"})
    wanted = (body.get("spec") or {}).get("audiences") or [ISSUER]
    claims = access.tokens.claims(token, access.core.clock.now()) or {}
    meant = [name for name in claims.get("aud", (ISSUER,)) if name in wanted]
    if not meant:
        problem = f"the token is not meant for {', '.join(wanted)}"
        return _answer(access, call, body, {"user": {}, "error": problem})
    return _answer(access, call, body, {"authenticated": True, "user": user_info(user), "audiences": meant})


def _check_attributes(call: Call, spec: Json, errors: list[FieldError]) -> None:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid("spec.nonResourceAttributes", path, detail))
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", None, detail))
    if errors:
        raise invalid_object(replace(call.kind, kind=""), "", errors)


def _decided(access: Authenticator, call: Call, body: Json, user: User) -> Response:
    spec = body.get("spec") or {}
    wanted = spec.get("nonResourceAttributes") or spec.get("resourceAttributes") or {}
    reason = access.authorizer.allows(user, attributes_of(wanted))
    status: Json = {"allowed": reason is not None}
    if reason:
        status["reason"] = reason
    return _answer(access, call, body, status)


def _self_review(access: Authenticator, call: Call, body: Json) -> Response:
    _check_attributes(call, body.get("spec") or {}, [])
    return _decided(access, call, body, call.user)


def _check_namespace(call: Call, spec: Json) -> None:
    """Refuse a local review about another namespace."""
    errors: list[FieldError] = []
    path = spec.get("nonResourceAttributes")
    namespace = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if path is None and namespace != call.namespace:
        errors.append(invalid("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace"))
    if path is not None:
        errors.append(invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    if errors:
        raise invalid_object(replace(call.kind, kind=""), "", errors)


def _review(access: Authenticator, call: Call, body: Json) -> Response:
    spec = body.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    _check_attributes(call, spec, errors)
    if call.namespace:
        _check_namespace(call, spec)
    if call.namespace:
        body = {**body, "metadata": {**(body.get("metadata") or {}), "namespace": call.namespace}}
    user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
    return _decided(access, call, body, user)


def _rules_review(access: Authenticator, call: Call, body: Json) -> Response:
    namespace = (body.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise bad_request("no namespace on request")
    rules = access.authorizer.rules(call.user, namespace)
    keys = ("verbs", "apiGroups", "resources", "resourceNames")
    resources = [{key: rule[key] for key in keys if rule.get(key)} for rule in rules if rule.get("resources")]
    paths = [
        {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
        for rule in rules
        if rule.get("nonResourceURLs")
    ]
    status = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
    return _answer(access, call, {"spec": {}}, status)


_REVIEWS: dict[str, Callable[[Authenticator, Call, Json], Response]] = {
    "SelfSubjectReview": _who_am_i,
    "TokenReview": _token_review,
    "SelfSubjectAccessReview": _self_review,
    "SubjectAccessReview": _review,
    "LocalSubjectAccessReview": _review,
    "SelfSubjectRulesReview": _rules_review,
}


def is_review(kind: Kind) -> bool:
    """Whether a kind is a review."""
    return kind.kind in _REVIEWS and kind.group in ("authentication.k8s.io", "authorization.k8s.io")


def review(access: Authenticator, call: Call) -> Response:
    """Answer a review."""
    return _REVIEWS[call.kind.kind](access, call, read_typed(call, call.kind))


def request_token(access: Authenticator, call: Call) -> Response:
    """A token for a service account."""
    account = access.core.store.get(call.kind.table, call.key)
    if account is None:
        raise not_found(call.kind, call.name)
    body: Json = read_typed(call, _TOKEN) if call.request.body else {}
    spec: Json = body.get("spec") or {}
    seconds: Any = spec.get("expirationSeconds") or _DEFAULT
    if seconds < _SHORTEST:
        error = invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        raise invalid_object(_TOKEN, "", [error])
    if seconds > 1 << 32:
        error = invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        raise invalid_object(_TOKEN, "", [error])
    name = (body.get("metadata") or {}).get("name", "")
    if name not in ("", call.name):
        error = invalid("metadata.name", name, "must match the service account name if specified")
        raise invalid_object(_TOKEN, call.name, [error])
    audiences = spec.get("audiences") or [ISSUER]
    now = access.core.clock.now()
    issued = int(now.timestamp())
    claims: Json = {
        "aud": audiences,
        "exp": issued + seconds,
        "iat": issued,
        "iss": ISSUER,
        "jti": access.core.chance.uid(),
        "kubernetes.io": {
            "namespace": call.namespace,
            "serviceaccount": {"name": call.name, "uid": account.uid},
        },
        "nbf": issued,
        "sub": f"system:serviceaccount:{call.namespace}:{call.name}",
    }
    bound = spec.get("boundObjectRef")
    if bound:
        claims["kubernetes.io"][bound["kind"].lower()] = _bound(access, call, bound)
    expires = rfc3339(now + timedelta(seconds=seconds))
    filled = {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound}
    metadata = {"name": call.name, "namespace": call.namespace, "creationTimestamp": access.core.timestamp()}
    named = {"metadata": metadata, "spec": filled, "asked": {**spec, "expirationSeconds": seconds}}
    return _answer(access, call, named, {"token": access.tokens.issue(claims), "expirationTimestamp": expires})


def _bound(access: Authenticator, call: Call, bound: Json) -> Json:
    """Name and UID of the object that a token is bound to."""
    kind = _BINDABLE.get((bound.get("apiVersion", ""), bound.get("kind", "")))
    if kind is None:
        group, _, version = str(bound.get("apiVersion", "")).rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={bound.get('kind', '')}")
    item = access.core.store.get(kind.table, kind.key(call.namespace, bound.get("name", "")))
    if item is None:
        raise not_found(kind, bound.get("name", ""))
    if kind.kind == "Pod" and load(item)["spec"].get("serviceAccountName") != call.name:
        raise bad_request(f"cannot bind token for serviceaccount {call.name!r} to a pod that runs as another one")
    if bound.get("uid") and bound["uid"] != item.uid:
        why = (
            f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. The object "
            "might have been deleted and then recreated"
        )
        raise conflict(kind, item.name, why)
    return {"name": item.name, "uid": item.uid}
