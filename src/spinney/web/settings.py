"""How the dashboard is served, and how its users log in."""

from __future__ import annotations

import ipaddress
from typing import Literal

from spinney.api.meta import Struct
from spinney.kube.process_settings import is_loopback

PORT = 8787

# none: every user of the (loopback) address sees what this process may read.
LoginMode = Literal["none", "token", "proxy"]


class Proxy(Struct, frozen=True):
    """An authenticating proxy in front: its addresses, and the headers in which it names the user."""

    # Addresses or networks; headers from elsewhere are refused.
    trusted: tuple[str, ...] = ()
    user_header: str = "X-Forwarded-User"
    groups_header: str = "X-Forwarded-Groups"


class Tls(Struct, frozen=True):
    """Files with a serving certificate and its key."""

    certificate: str = ""
    key: str = ""


class Limits(Struct, frozen=True):
    """What one client may ask for."""

    requests_per_second: float = 50.0
    burst: int = 200
    streams: int = 8
    body_bytes: int = 65536
    what_ifs_per_minute: int = 20


class DashboardSettings(Struct, frozen=True):
    """The configuration file of `spinney run dashboard`."""

    host: str = "127.0.0.1"
    port: int = PORT
    # Where that port is taken, any free one will do.
    any_port: bool = False
    login: LoginMode = "none"
    proxy: Proxy = Proxy()
    tls: Tls = Tls()
    limits: Limits = Limits()
    # How much of the past is kept, for the page `Time machine`.
    history_minutes: int = 60
    history_megabytes: int = 64


def check(settings: DashboardSettings) -> None:
    """Raise a ValueError that names the field if the settings are unsafe or contradict each other."""
    if settings.login == "none" and not is_loopback(settings.host):
        raise ValueError(
            f"login is none and host is {settings.host!r}: without a login the dashboard is served on a loopback "
            "address only; set login to token or proxy"
        )
    if settings.login == "proxy" and not settings.proxy.trusted:
        raise ValueError("login is proxy, but proxy.trusted is empty: name the proxy's addresses or networks")
    for network in settings.proxy.trusted:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ValueError(f"proxy.trusted: {error}") from error
    if bool(settings.tls.certificate) != bool(settings.tls.key):
        raise ValueError("tls.certificate and tls.key go together")
