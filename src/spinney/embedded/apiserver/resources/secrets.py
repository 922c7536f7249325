"""Secrets."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, too_long
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.configmaps import MAX_BYTES, check_immutable, check_keys
from spinney.embedded.apiserver.resources.quota import Quota
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.names import check_unchanged


def _default(document: Json) -> None:
    document.setdefault("type", "Opaque")
    texts = document.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        document["data"] = {**(document.get("data") or {}), **encoded}


def _check(document: Json) -> list[FieldError]:
    data = document.get("data") or {}
    errors = check_keys(data, "data")
    size = 0
    for key, value in data.items():
        try:
            size += len(base64.b64decode(value, validate=True))
        except binascii.Error:
            errors.append(invalid(f"data[{key}]", value, "must be base64"))
    if size > MAX_BYTES:
        errors.append(too_long("data", MAX_BYTES))
    kind = document.get("type", "")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        errors += [required("data[username]"), required("data[password]")]
    if kind == "kubernetes.io/service-account-token":
        key = "kubernetes.io/service-account.name"
        if not (document["metadata"].get("annotations") or {}).get(key):
            errors.append(required(f"metadata.annotations[{key}]"))
    for key in (".dockerconfigjson", ".dockercfg"):
        if kind == f"kubernetes.io/{key[1:]}" and key in data and not errors:
            errors += _check_json(base64.b64decode(data[key]), f"data[{key}]")
    needed = {
        "kubernetes.io/dockercfg": (".dockercfg",),
        "kubernetes.io/tls": ("tls.crt", "tls.key"),
        "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
        "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    }.get(kind, ())
    return errors + [required(f"data[{key}]") for key in needed if key not in data]


def _check_json(text: bytes, path: str) -> list[FieldError]:
    """Check that a value is JSON, without showing it."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return [invalid(path, "<secret contents redacted>", str(error))]
    return []


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a Secret."""
    return check_immutable(new, old, ("data",)) + check_unchanged(new, old, ["type"])


def _cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), document.get("type", ""), len(document.get("data") or ()), cells.age(document, now)]


SECRETS = Resource(
    kind="Secret",
    plural="secrets",
    default=_default,
    quota=Quota(counted=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Type,Data,Age", _cells),
    selectable=("type",),
)
