"""What is wrong with the certificate and key of a TLS secret, which Kubernetes keeps but warns of."""

from __future__ import annotations

import base64
import binascii
import re

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from spinney.api.meta import Json

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)


def tls_warning(secret: Json) -> str:
    """Why certificate and key are no pair, in the words of Go; nothing where they are one."""
    if secret.get("type") != "kubernetes.io/tls":
        return ""
    data = secret.get("data") or {}
    certificate, key = _bytes(data.get("tls.crt", "")), _bytes(data.get("tls.key", ""))
    return _missing_certificate(certificate) or _missing_key(key) or _mismatch(certificate, key)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""


def _kinds(text: bytes) -> list[str]:
    return [found[1].decode() for found in _BLOCK.finditer(text)]


def _missing_certificate(text: bytes) -> str:
    kinds = _kinds(text)
    if "CERTIFICATE" in kinds:
        return ""
    if not kinds:
        return "tls: failed to find any PEM data in certificate input"
    if len(kinds) == 1 and kinds[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
            "have been switched"
        )
    listed = " ".join(kinds)
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{listed}]"
    )


def _missing_key(text: bytes) -> str:
    kinds = _kinds(text)
    if any(kind.endswith("PRIVATE KEY") for kind in kinds):
        return ""
    if not kinds:
        return "tls: failed to find any PEM data in key input"
    if kinds == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    listed = " ".join(kinds)
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{listed}]"
    )


def _mismatch(certificate: bytes, key: bytes) -> str:
    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    own = private.public_key()
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return "" if own.public_bytes(*form) == public.public_bytes(*form) else "tls: private key does not match public key"
