"""CertificateSigningRequests, which are stored and not signed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources import ages, cells
from spinney.embedded.apiserver.resources.record import Resource, Table


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    """Record the user who sent the request."""
    user = call.user
    extra = {key: list(values) for key, values in user.extra.items()}
    asker: Json = {"username": user.name, "groups": list(user.groups), "uid": user.uid, "extra": extra}
    document["spec"] |= {key: value for key, value in asker.items() if value}


def _approve(new: Json, old: Json) -> Json:
    return {**old, "status": new.get("status") or {}, "metadata": dict(old["metadata"])}


def _cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    life = spec.get("expirationSeconds")
    return [
        cells.name(document),
        cells.age(document, now),
        spec.get("signerName") or "<none>",
        spec.get("username", ""),
        "<none>" if life is None else ages.duration(life),
        _state(cells.status(document)),
    ]


def _state(status: Json) -> str:
    types = {entry.get("type") for entry in status.get("conditions") or ()}
    state = next((kind for kind in ("Denied", "Approved") if kind in types), "Pending")
    state += ",Failed" if "Failed" in types else ""
    return state + (",Issued" if status.get("certificate") else "")


CERTIFICATE_SIGNING_REQUESTS = Resource(
    group="certificates.k8s.io",
    kind="CertificateSigningRequest",
    plural="certificatesigningrequests",
    namespaced=False,
    short_names=("csr",),
    subresources=("approval", "status"),
    prepare_create=_prepare_create,
    prepare_subresources={"approval": _approve},
    table=Table("Name,Age,SignerName,Requestor,RequestedDuration,Condition", _cells),
    selectable=("spec.signerName",),
)
