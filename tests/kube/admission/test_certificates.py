"""Certificates: trusted by who should trust them, and renewed in time without a gap."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from spinney.kube.admission.certificates import AUTHORITY_LIFE, SERVING_LIFE, Bundle, renewed
from spinney.kube.client.credentials import load_certificate

NOW = datetime.now(UTC)  # noqa: TID251  # OpenSSL checks against the machine's clock
NAMES = ["webhook.example.svc", "127.0.0.1"]


def handshake(bundle: Bundle, trusted: str, name: str) -> None:
    """A TLS handshake in memory."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(server_context, bundle.certificate, bundle.key)
    client_context = ssl.create_default_context(cadata=trusted)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(down, up, server_hostname=name)
    server = server_context.wrap_bio(up, down, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue


@pytest.mark.parametrize("name", NAMES)
def test_a_new_bundle_is_trusted(name: str) -> None:
    """Who trusts our authority accepts our server, by name and by address."""
    bundle = renewed(None, NAMES, NOW)
    handshake(bundle, bundle.trusted, name)


def test_another_name_is_refused() -> None:
    """The certificate is good for our names only."""
    bundle = renewed(None, NAMES, NOW)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(bundle, bundle.trusted, "other.example.svc")


def test_a_good_bundle_stays() -> None:
    """Nothing is renewed before a third of its life is left."""
    bundle = renewed(None, NAMES, NOW)
    assert renewed(bundle, NAMES, NOW + SERVING_LIFE / 2) is bundle


def test_the_serving_certificate_is_renewed() -> None:
    """Late in its life the serving certificate is replaced, under the same authority."""
    bundle = renewed(None, NAMES, NOW)
    later = renewed(bundle, NAMES, NOW + SERVING_LIFE * 0.7)
    assert later.authority == bundle.authority
    assert later.certificate != bundle.certificate


def test_a_new_name_needs_a_new_certificate() -> None:
    """A name that the certificate lacks is reason enough."""
    bundle = renewed(None, NAMES, NOW)
    later = renewed(bundle, [*NAMES, "new.example.svc"], NOW)
    handshake(later, bundle.trusted, "new.example.svc")


def test_two_authorities_overlap() -> None:
    """While the authority changes, callers trust both: either replica's certificate is accepted."""
    start = NOW - AUTHORITY_LIFE * 0.7
    old = renewed(None, NAMES, start)
    old = renewed(old, NAMES, start + SERVING_LIFE * 0.7 * 2)
    old = renewed(old, NAMES, NOW - timedelta(days=30))
    new = renewed(old, NAMES, NOW)
    assert new.authority != old.authority
    assert new.trusted == new.authority + old.authority
    handshake(new, new.trusted, NAMES[0])
    handshake(old, new.trusted, NAMES[0])


def test_an_authority_cannot_sign_authorities() -> None:
    """Our authority signs servers only."""
    bundle = renewed(None, NAMES, NOW)
    certificate = x509.load_pem_x509_certificate(bundle.authority.encode())
    limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert limits.critical
    assert limits.value.path_length == 0
