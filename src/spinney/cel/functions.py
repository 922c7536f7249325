"""The functions that Kubernetes adds to CEL; their values are maps, because the engine has no other types for them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cel_expr_python import cel

from spinney.api import formats, naming, patterns, quantity
from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.cel import authorizer

_T = cel.Type
_LIST = _T.List(_T.DYN)
_MAP = _T.Map(_T.STRING, _T.DYN)
_LONGEST_VERSION = 256
_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)


def _function(name: str, *overloads: tuple[list[Any], Any, Any, bool]) -> Any:
    declared = [
        cel.Overload(id=f"{name}_{at}", parameters=parameters, return_type=result, impl=impl, is_member=member)
        for at, (parameters, result, impl, member) in enumerate(overloads)
    ]
    return cel.FunctionDecl(name, declared)


def _accepted_by(read: Callable[[str], object]) -> Callable[[str], bool]:
    """A test whether a text can be read."""

    def accepted(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return accepted


def quantity_value(text: str) -> Json:
    """A quantity as expressions see it."""
    return {"quantity": quantity.canonical(text)}


def _amount(value: Mapping[str, Any]) -> Any:
    return quantity.exact(value["quantity"])


def _url(text: str) -> Json:
    return {"url": text}


def _is_url(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc) or text.startswith("/")


def _address(value: str | Mapping[str, Any]) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    text = value if isinstance(value, str) else value["ip"]
    return ipaddress.ip_address(text)


def _range(value: str | Mapping[str, Any]) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    text = value if isinstance(value, str) else value["cidr"]
    if not re.search(r"/\d+\Z", text):
        raise ValueError(f"{text!r} is not a range of addresses, such as 10.0.0.0/8")
    return ipaddress.ip_interface(text)


def _contains_range(outer: Mapping[str, Any], inner: str | Mapping[str, Any]) -> bool:
    wide, narrow = _range(outer).network, _range(inner).network
    return wide.version == narrow.version and wide.prefixlen <= narrow.prefixlen and narrow.network_address in wide


def _is_global(value: Mapping[str, Any]) -> bool:
    address = _address(value)
    outside = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not outside and str(address) != "255.255.255.255"


def semver_value(text: str) -> Json:
    """A semantic version as expressions see it."""
    if not _is_version(text):
        raise ValueError(f"No Major.Minor.Patch elements found: {text}")
    return {"semver": text}


def _normal_version(text: str) -> str:
    """A version in full: without a leading `v`, with missing numbers as 0."""
    number, mark, rest = re.fullmatch(r"v?([\d.]*)([-+]?)(.*)", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]  # matches every text
    parts = [part if (value := whole_number(part)) is None else str(value) for part in number.split(".")]
    return ".".join([*parts, "0", "0"][: max(3, len(parts))]) + mark + rest


def _is_version(text: str) -> bool:
    return len(text) <= _LONGEST_VERSION and _VERSION.fullmatch(text) is not None


def _part(value: Mapping[str, Any], group: int) -> int:
    match = _VERSION.fullmatch(value["semver"])
    assert match is not None
    return int(match[group])


def _order(value: Mapping[str, Any]) -> Any:
    """The sort key of a quantity or version; a pre-release comes before its release."""
    if "semver" not in value:
        return _amount(value)
    match = _VERSION.fullmatch(value["semver"])
    assert match is not None
    suffix = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in (match[4] or "").split(".") if part]
    return (int(match[1]), int(match[2]), int(match[3]), not suffix, suffix)


def _changed(value: Mapping[str, Any], other: Mapping[str, Any] | int, sign: int) -> Json:
    amount = _amount(value) + sign * (other if isinstance(other, int) else _amount(other))
    return {"quantity": quantity.canonical(str(amount) if amount.denominator == 1 else f"{float(amount)}")}


def _like(form: str) -> Callable[[str], list[str]]:
    return lambda text: [] if formats.fits(text, form) else [f"invalid {form}"]


def _begun(problems: Callable[[str], Iterable[str]]) -> Callable[[str], list[str]]:
    """The rule for the first part of a name, which may end with a dash."""
    return lambda text: list(problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text))


_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": lambda text: list(naming.label_problems(text)),
    "dns1123Subdomain": lambda text: list(naming.subdomain_problems(text)),
    "dns1035Label": lambda text: list(naming.dns_1035_problems(text)),
    "qualifiedName": lambda text: list(naming.qualified_problems(text)),
    "dns1123LabelPrefix": _begun(naming.label_problems),
    "dns1123SubdomainPrefix": _begun(naming.subdomain_problems),
    "dns1035LabelPrefix": _begun(naming.dns_1035_problems),
    "labelValue": lambda text: list(naming.value_problems(text)),
    **{form: _like(form) for form in ("uri", "uuid", "byte", "date", "datetime")},
}
_VALIDATED = re.compile(r"(\bformat\.\w+\(\))\.validate\(((?:[^()]|\([^()]*\))*)\)")
FUNCTIONS = [
    _function("quantity", ([_T.STRING], _MAP, quantity_value, False)),
    _function("isQuantity", ([_T.STRING], _T.BOOL, _accepted_by(quantity.exact), False)),
    _function("isGreaterThan", ([_MAP, _MAP], _T.BOOL, lambda a, b: _order(a) > _order(b), True)),
    _function("isLessThan", ([_MAP, _MAP], _T.BOOL, lambda a, b: _order(a) < _order(b), True)),
    _function(
        "compareTo",
        ([_MAP, _MAP], _T.INT, lambda a, b: (_order(a) > _order(b)) - (_order(a) < _order(b)), True),
    ),
    _function(
        "add",
        ([_MAP, _MAP], _MAP, lambda a, b: _changed(a, b, 1), True),
        ([_MAP, _T.INT], _MAP, lambda a, b: _changed(a, b, 1), True),
    ),
    _function(
        "sub",
        ([_MAP, _MAP], _MAP, lambda a, b: _changed(a, b, -1), True),
        ([_MAP, _T.INT], _MAP, lambda a, b: _changed(a, b, -1), True),
    ),
    _function(
        "semver",
        ([_T.STRING], _MAP, semver_value, False),
        ([_T.STRING, _T.BOOL], _MAP, lambda t, loose: semver_value(_normal_version(t) if loose else t), False),
    ),
    _function(
        "isSemver",
        ([_T.STRING], _T.BOOL, _is_version, False),
        ([_T.STRING, _T.BOOL], _T.BOOL, lambda t, loose: _is_version(_normal_version(t) if loose else t), False),
    ),
    _function("major", ([_MAP], _T.INT, lambda v: _part(v, 1), True)),
    _function("minor", ([_MAP], _T.INT, lambda v: _part(v, 2), True)),
    _function("patch", ([_MAP], _T.INT, lambda v: _part(v, 3), True)),
    _function("isInteger", ([_MAP], _T.BOOL, lambda a: _amount(a).denominator == 1, True)),
    _function("asInteger", ([_MAP], _T.INT, lambda a: int(_amount(a)), True)),
    _function("asApproximateFloat", ([_MAP], _T.DOUBLE, lambda a: float(_amount(a)), True)),
    _function("sign", ([_MAP], _T.INT, lambda a: (_amount(a) > 0) - (_amount(a) < 0), True)),
    _function("isSorted", ([_LIST], _T.BOOL, lambda a: all(x <= y for x, y in pairwise(a)), True)),
    _function("sum", ([_LIST], _T.DYN, sum, True)),
    _function("min", ([_LIST], _T.DYN, min, True)),
    _function("max", ([_LIST], _T.DYN, max, True)),
    _function("find", ([_T.STRING, _T.STRING], _T.STRING, lambda text, pattern: patterns.first(pattern, text), True)),
    _function(
        "findAll",
        ([_T.STRING, _T.STRING], _T.List(_T.STRING), lambda text, pattern: patterns.every(pattern, text), True),
        (
            [_T.STRING, _T.STRING, _T.INT],
            _T.List(_T.STRING),
            lambda text, pattern, most: patterns.every(pattern, text)[:most],
            True,
        ),
    ),
    _function("url", ([_T.STRING], _MAP, _url, False)),
    _function("isURL", ([_T.STRING], _T.BOOL, _is_url, False)),
    _function("getScheme", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).scheme, True)),
    _function("getHost", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).netloc, True)),
    _function("getHostname", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).hostname or "", True)),
    _function("getPort", ([_MAP], _T.STRING, lambda u: str(urlsplit(u["url"]).port or ""), True)),
    _function("getEscapedPath", ([_MAP], _T.STRING, lambda u: urlsplit(u["url"]).path, True)),
    _function("getQuery", ([_MAP], _MAP, lambda u: parse_qs(urlsplit(u["url"]).query), True)),
    _function("isIP", ([_T.STRING], _T.BOOL, _accepted_by(_address), False)),
    _function(
        "ip",
        ([_T.STRING], _MAP, lambda t: {"ip": str(_address(t))}, False),
        ([_MAP], _MAP, lambda c: {"ip": str(_range(c).ip)}, True),
    ),
    _function("ip.isCanonical", ([_T.STRING], _T.BOOL, lambda t: str(_address(t)) == t, False)),
    _function("family", ([_MAP], _T.INT, lambda a: _address(a).version, True)),
    _function("isUnspecified", ([_MAP], _T.BOOL, lambda a: _address(a).is_unspecified, True)),
    _function("isLoopback", ([_MAP], _T.BOOL, lambda a: _address(a).is_loopback, True)),
    _function("isLinkLocalUnicast", ([_MAP], _T.BOOL, lambda a: _address(a).is_link_local, True)),
    _function(
        "isLinkLocalMulticast",
        ([_MAP], _T.BOOL, lambda a: bool(re.match(r"224\.0\.0\.|ff.2:", str(_address(a)))), True),
    ),
    _function("isGlobalUnicast", ([_MAP], _T.BOOL, _is_global, True)),
    _function("isCIDR", ([_T.STRING], _T.BOOL, _accepted_by(_range), False)),
    _function("cidr", ([_T.STRING], _MAP, lambda t: {"cidr": str(_range(t))}, False)),
    _function(
        "containsIP",
        ([_MAP, _T.STRING], _T.BOOL, lambda c, a: _address(a) in _range(c).network, True),
        ([_MAP, _MAP], _T.BOOL, lambda c, a: _address(a) in _range(c).network, True),
    ),
    _function(
        "containsCIDR",
        ([_MAP, _T.STRING], _T.BOOL, _contains_range, True),
        ([_MAP, _MAP], _T.BOOL, _contains_range, True),
    ),
    _function("masked", ([_MAP], _MAP, lambda c: {"cidr": str(_range(c).network)}, True)),
    _function("prefixLength", ([_MAP], _T.INT, lambda c: _range(c).network.prefixlen, True)),
    _function("sets.contains", ([_LIST, _LIST], _T.BOOL, lambda a, b: all(x in a for x in b), False)),
    _function("sets.intersects", ([_LIST, _LIST], _T.BOOL, lambda a, b: any(x in a for x in b), False)),
    _function(
        "sets.equivalent",
        ([_LIST, _LIST], _T.BOOL, lambda a, b: all(x in a for x in b) and all(x in b for x in a), False),
    ),
    *(_function(f"format.{name}", ([], _MAP, partial(dict, format=name), False)) for name in _FORMATS),
    _function("problems", ([_MAP, _T.STRING], _T.List(_T.STRING), lambda f, t: _FORMATS[f["format"]](t), True)),
    *authorizer.functions(_function, _T),
]


def expand_format_validation(text: str) -> str:
    """Spell `format.x().validate(…)` with functions that this engine can be given."""
    return _VALIDATED.sub(r"optional.ofNonZeroValue(\1.problems(\2))", text)
