"""The string formats that a schema may require, as Kubernetes' library checks them; rare ones are not checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from ipaddress import IPv6Address, ip_network
from urllib.parse import urlsplit

from spinney.api import patterns
from spinney.api.numbers import whole_number

_HOST = re.compile(
    r"^([a-zA-Z0-9]((-?[a-zA-Z0-9]{0,62})?)|([a-zA-Z0-9](([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)(\.))+([a-zA-Z]){2,63})\Z"
)
_TIME = re.compile(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})\Z")
_DURATION = r"^[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*\z"
_UNITS = ("nano", "ns", "micro", "us", "µs", "milli", "ms", "sec", "s", "min", "m", "hr", "hour", "h", "day", "d")
_WORDY = re.compile(r"\d+\s*([A-Za-zµ]+)")
# Longer texts are none of these; matching them could take quadratic time.
_LONGEST = 2048
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PATTERNS = {
    "mac": r"([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}(([:-][0-9a-fA-F]{2}){2}|([:-][0-9a-fA-F]{2}){14})?|"
    r"[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}((\.[0-9a-fA-F]{4}){1}|(\.[0-9a-fA-F]{4}){7})?)",
    "uuid": r"(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})",
    "uuid3": r"(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12})",
    "uuid4": r"(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12})",
    "uuid5": r"(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12})",
    "byte": r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    "email": r"([^<>@]*<[^@\s<>]+@[^@\s<>]+>|[^@\s<>]+@[^@\s<>]+)",
    "k8sshortname": rf"(?=.{{1,63}}\Z){_LABEL}",
    "k8slongname": rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*",
}


def _is_host(text: str) -> bool:
    return bool(_HOST.match(text)) and len(text) <= 255 and all(len(part) <= 63 for part in text.split("."))


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    match = _TIME.match(rest)
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if text == "0" or patterns.found_in(_DURATION, text):
        return True
    units = [match[1].lower() for match in _WORDY.finditer(text)]
    return bool(units) and all(unit.startswith(_UNITS) or unit.startswith("w") for unit in units)


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all((number := whole_number(part)) is not None and number < 256 for part in parts)


def _is_ipv6(text: str) -> bool:
    try:
        return ":" in text and bool(IPv6Address(text))
    except ValueError:
        return False


def _is_network(text: str) -> bool:
    try:
        _, slash, bits = text.rpartition("/")
        return bool(slash) and whole_number(bits) is not None and bool(ip_network(text, strict=False))
    except ValueError:
        return False


def _is_uri(text: str) -> bool:
    try:
        return text.startswith("/") or bool(urlsplit(text).scheme)
    except ValueError:
        return False


_CHECKS: dict[str, Callable[[str], object]] = {
    **{name: re.compile(rf"^{pattern}\Z", re.ASCII).match for name, pattern in _PATTERNS.items()},
    "hostname": _is_host,
    "date": _is_date,
    "datetime": _is_moment,
    "duration": _is_duration,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_network,
    "uri": _is_uri,
}


def is_checked(form: str) -> bool:
    """Whether a format is known; an unknown one allows every string."""
    return form.replace("-", "") in _CHECKS


def fits(text: str, form: str) -> bool:
    """Whether a string has a format."""
    form = form.replace("-", "")
    check = _CHECKS.get(form)
    if check is None:
        return True
    return (len(text) <= _LONGEST or form in ("byte", "uri")) and bool(check(text))
