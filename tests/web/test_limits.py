"""What one client may ask for."""

from __future__ import annotations

import pytest

from spinney.web.limits import ClientLimits, TooMany
from spinney.web.settings import DashboardSettings, Limits, Proxy, Tls, check


def test_a_client_that_asks_too_often_is_told_when_to_come_back() -> None:
    """Others are served meanwhile, and it is again once time has passed."""
    now = [0.0]
    limits = ClientLimits(Limits(requests_per_second=2.0, burst=3), lambda: now[0])
    for _ in range(3):
        limits.request("a")
    with pytest.raises(TooMany) as refused:
        limits.request("a")
    assert refused.value.after == pytest.approx(0.5)
    limits.request("b")
    now[0] = 0.5
    limits.request("a")


def test_streams_are_counted_while_they_last() -> None:
    """One that ended makes room for another."""
    limits = ClientLimits(Limits(streams=1), lambda: 0.0)
    with limits.stream("a"):
        with pytest.raises(TooMany), limits.stream("a"):
            pass
        with limits.stream("b"):
            pass
    with limits.stream("a"):
        pass


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (DashboardSettings(host="0.0.0.0"), "login is none and host is '0.0.0.0'"),
        (DashboardSettings(host="example.org"), "login is none"),
        (DashboardSettings(login="proxy"), "proxy.trusted is empty"),
        (DashboardSettings(login="proxy", proxy=Proxy(trusted=("10.0.0.1/8",))), "proxy.trusted"),
        (DashboardSettings(tls=Tls(certificate="a")), "tls.certificate and tls.key"),
    ],
)
def test_unsafe_settings_are_refused_by_name(settings: DashboardSettings, named: str) -> None:
    """Nothing is served without a login to anyone but this machine."""
    with pytest.raises(ValueError, match=named.replace(".", r"\.")):
        check(settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_no_login(host: str) -> None:
    """As `kubectl proxy` does it."""
    check(DashboardSettings(host=host))
