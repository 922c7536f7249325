"""A certificate authority for one test control plane: every certificate and key it starts with."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spinney.kube.clock import SystemClock

_LIFE = timedelta(days=2)


class Authority:
    """Signs certificates for servers and users, and writes them below one folder."""

    def __init__(self, folder: Path, addresses: tuple[str, ...] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        # Where servers listen beside the loopback interface.
        self._addresses = addresses
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "spinney-test-ca")])
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(self._authority_certificate()))

    def server(self) -> tuple[Path, Path]:
        """Certificate and key of a server on the loopback interface and the other addresses."""
        names = [x509.DNSName("localhost"), x509.DNSName("kubernetes.default.svc")]
        known_addresses = ("127.0.0.1", "10.0.0.1", *self._addresses)
        addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in known_addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        alternatives = x509.SubjectAlternativeName([*names, *addresses])
        return self._issue("server", subject, ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def user(self, name: str, groups: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Certificate and key of a user: the common name is the user's, each organization a group."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        stem = "user-" + "-".join((name, *groups)).replace(":", "_").replace("/", "_")
        return self._issue(stem, x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def signing_key(self) -> Path:
        """The key that signs service account tokens (RSA, which every release accepts)."""
        path = self.folder / "service-accounts.key"
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        path.write_bytes(_key_pem(key))
        path.chmod(0o600)
        return path

    def _issue(
        self,
        stem: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> tuple[Path, Path]:
        certificate, secret = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        if certificate.exists():
            return certificate, secret
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject).public_key(key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        secret.write_bytes(_key_pem(key))
        secret.chmod(0o600)
        certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        return certificate, secret

    def _authority_certificate(self) -> x509.Certificate:
        builder = self._builder(self._name).public_key(self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def _builder(self, subject: x509.Name) -> x509.CertificateBuilder:
        now = SystemClock().now()
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(minutes=5)).not_valid_after(now + _LIFE)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
