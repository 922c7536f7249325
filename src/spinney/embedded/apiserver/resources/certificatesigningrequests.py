"""CertificateSigningRequests."""

from __future__ import annotations

import base64
import binascii

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported

_USAGES = (
    *("any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment"),
    *("decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel"),
    *("ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime"),
    *("server auth", "signing", "timestamping"),
)
_BEGIN = b"-----BEGIN CERTIFICATE REQUEST-----"


def check(document: Json) -> list[FieldError]:
    """A new request."""
    spec = document.get("spec") or {}
    request, usages, seconds = spec.get("request"), spec.get("usages") or (), spec.get("expirationSeconds")
    found: list[FieldError] = []
    if not _decoded(request or "").lstrip().startswith(_BEGIN):
        found.append(invalid("spec.request", request, "PEM block type must be CERTIFICATE REQUEST"))
    if not usages:
        found.append(required("spec.usages"))
    found += [
        unsupported(f"spec.usages[{at}]", usage, _USAGES) for at, usage in enumerate(usages) if usage not in _USAGES
    ]
    if not spec.get("signerName"):
        found.append(required("spec.signerName"))
    if seconds is not None and seconds < 600:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(invalid("spec.expirationSeconds", seconds, detail))
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
