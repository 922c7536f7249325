"""Kinds that cert-manager and Prometheus' operator bring: only the fields that we write, all of them closed.

A field that we misspell, or a type that does not fit, is refused as it would be by the real definitions.
"""

from __future__ import annotations

from spinney.api.meta import Json

MONITORING, CERTIFICATES = "monitoring.coreos.com", "cert-manager.io"
_TEXT: Json = {"type": "string"}
_TRUTH: Json = {"type": "boolean"}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_MAP: Json = {"type": "object", "additionalProperties": _TEXT}


def _closed(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _listed(item: Json) -> Json:
    return {"type": "array", "items": item}


_ENDPOINT = _closed(
    port=_TEXT,
    scheme={**_TEXT, "enum": ["http", "https"]},
    bearerTokenFile=_TEXT,
    tlsConfig=_closed(insecureSkipVerify=_TRUTH),
)
_SERVICE_MONITOR = _closed(
    ("selector",),
    namespaceSelector=_closed(matchNames=_TEXTS),
    selector=_closed(matchLabels=_MAP),
    endpoints=_listed(_ENDPOINT),
)
_RULE = {
    **_closed(("expr",), alert=_TEXT, labels=_MAP, annotations=_MAP),
}
_RULE["properties"] |= {"expr": {"x-kubernetes-int-or-string": True}, "for": {**_TEXT, "pattern": "^[0-9]+[smhd]$"}}
_PROMETHEUS_RULE = _closed(groups=_listed(_closed(("name",), name=_TEXT, rules=_listed(_RULE))))
_CERTIFICATE = _closed(
    ("issuerRef", "secretName"),
    secretName=_TEXT,
    dnsNames=_TEXTS,
    issuerRef=_closed(("name",), name=_TEXT, kind=_TEXT, group=_TEXT),
)
_ISSUER = _closed(selfSigned=_closed())


def definition(group: str, kind: str, spec: Json) -> Json:
    """The definition of a namespaced kind with this spec."""
    plural = f"{kind.lower()}s"
    schema = _closed(("spec",), apiVersion=_TEXT, kind=_TEXT, metadata={"type": "object"}, spec=spec)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


DEFINITIONS = [
    definition(MONITORING, "ServiceMonitor", _SERVICE_MONITOR),
    definition(MONITORING, "PrometheusRule", _PROMETHEUS_RULE),
    definition(CERTIFICATES, "Certificate", _CERTIFICATE),
    definition(CERTIFICATES, "Issuer", _ISSUER),
]
KINDS = {each["spec"]["names"]["kind"] for each in DEFINITIONS}
