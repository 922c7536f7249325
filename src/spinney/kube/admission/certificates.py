"""Certificates for webhooks: our own CA and serving certificates, both renewed in time."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spinney.api.meta import Struct

AUTHORITY_LIFE = timedelta(days=365)
SERVING_LIFE = timedelta(days=90)
# A clock that is a little behind must not find a certificate from the future.
_BACKDATED = timedelta(hours=1)


class Bundle(Struct, frozen=True):
    """PEM certificates and keys: the CA, the CA before it, and the serving certificate."""

    authority: str
    authority_key: str
    # The authority before this one, trusted until its last serving certificate is gone.
    previous: str
    certificate: str
    key: str

    @property
    def trusted(self) -> str:
        """The CA bundle for callers."""
        return self.authority + self.previous


def renewed(bundle: Bundle | None, names: Sequence[str], now: datetime) -> Bundle:
    """The bundle itself while it is valid, else one with new parts.

    A part is renewed when a third of its life is left. A new authority is trusted together with the old one, so a
    caller that has only seen one of them still accepts either replica.
    """
    if bundle is None:
        authority, authority_key = _make_authority(now)
        certificate, key = _make_serving(authority, authority_key, names, now)
        return Bundle(authority=authority, authority_key=authority_key, previous="", certificate=certificate, key=key)
    if _is_old(bundle.authority, now):
        authority, authority_key = _make_authority(now)
        certificate, key = _make_serving(authority, authority_key, names, now)
        return Bundle(
            authority=authority,
            authority_key=authority_key,
            previous=bundle.authority,
            certificate=certificate,
            key=key,
        )
    if _is_old(bundle.certificate, now) or not _covers(bundle.certificate, names):
        certificate, key = _make_serving(bundle.authority, bundle.authority_key, names, now)
        return Bundle(
            authority=bundle.authority,
            authority_key=bundle.authority_key,
            previous=bundle.previous,
            certificate=certificate,
            key=key,
        )
    return bundle


def _make_authority(now: datetime) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities must not share a name, or a bundle of both is ambiguous to verify against.
    name = _name(f"spinney webhook authority {now:%Y%m%d%H%M%S}")
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate), _key_pem(key)


def _make_serving(authority: str, authority_key: str, names: Sequence[str], now: datetime) -> tuple[str, str]:
    issuer = x509.load_pem_x509_certificate(authority.encode())
    signer = serialization.load_pem_private_key(authority_key.encode(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(names[0]), issuer.subject, key.public_key(), now, SERVING_LIFE)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    return _pem(certificate), _key_pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _is_old(pem: str, now: datetime) -> bool:
    certificate = x509.load_pem_x509_certificate(pem.encode())
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now > certificate.not_valid_after_utc - life / 3


def _covers(pem: str, names: Sequence[str]) -> bool:
    certificate = x509.load_pem_x509_certificate(pem.encode())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {_alternative(name) for name in names} <= set(alternatives)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
