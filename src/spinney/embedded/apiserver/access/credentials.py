"""Credentials: client certificates, tokens of service accounts, and the kubeconfig for kubectl."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spinney.api.meta import Json
from spinney.kube.admission.certificates import Bundle, renewed
from spinney.kube.client.transport import User

SERVER_NAMES = (
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.96.0.1",
)
ISSUER = "https://kubernetes.default.svc"
ADMIN = User("kubernetes-admin", ("system:masters",))
_LIFE = timedelta(days=365)


class Authority:
    """Signs the server's certificate and those of its users."""

    def __init__(self, now: datetime, bundle: Bundle | None = None) -> None:
        self.bundle = renewed(bundle, SERVER_NAMES, now)
        self._now = now

    def client(self, user: User) -> tuple[str, str]:
        """A client certificate and key for a user: name as common name, groups as organisations."""
        issuer = x509.load_pem_x509_certificate(self.bundle.authority.encode())
        signer = serialization.load_pem_private_key(self.bundle.authority_key.encode(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in user.groups]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user.name)]))
            .issuer_name(issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(hours=1))
            .not_valid_after(self._now + _LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(signer, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        return pem, private


def write_kubeconfig(path: Path, url: str, authority: Authority, user: User = ADMIN) -> None:
    """A kubeconfig that only its owner can read."""
    name = "spinney"
    certificate, key = authority.client(user)
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": url, "certificate-authority-data": _b64(authority.bundle.trusted)}}
        ],
        "users": [{"name": name, "user": {"client-certificate-data": _b64(certificate), "client-key-data": _b64(key)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # In a folder that others may write to, they could have made it, and could read what is written to it.
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        yaml.safe_dump(document, file, sort_keys=False)
    draft.replace(path)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Tokens:
    """Signs and reads the tokens of service accounts."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def issue(self, claims: Json) -> str:
        """A signed token."""
        head = _segment({"alg": "HS256", "typ": "JWT"})
        payload = _segment(claims)
        return f"{head}.{payload}.{self._signature(f'{head}.{payload}')}"

    def claims(self, token: str, now: datetime) -> Json | None:
        """The claims of a token, if it is ours and has not expired."""
        if not token.isascii():
            return None
        head, _, rest = token.partition(".")
        payload, _, signature = rest.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(f"{head}.{payload}").encode()):
            return None
        try:
            claims: Json = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        except (ValueError, msgspec.DecodeError):
            return None
        return claims if claims.get("exp", 0) > now.timestamp() else None

    def _signature(self, text: str) -> str:
        return _unpadded(hmac.new(self._secret, text.encode(), hashlib.sha256).digest())


def _segment(value: Json) -> str:
    return _unpadded(msgspec.json.encode(value))


def _unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def account_user(namespace: str, name: str, uid: str = "") -> User:
    """The user of a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid)
