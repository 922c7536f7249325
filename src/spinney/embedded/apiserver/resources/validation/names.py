"""Names, labels and annotations: the character rules that every object lives under."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spinney.embedded.apiserver.errors import FieldError, invalid, required, too_long

DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
DNS_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
DNS_1035 = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?\Z")
QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")
CONFIG_KEY = re.compile(r"^[-._a-zA-Z0-9]+\Z")
ENV_NAME = re.compile(r"^[ -<>-~]+\Z")
PORT_NAME = re.compile(r"^[-a-z0-9]+\Z")

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\Z")
_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
ANNOTATIONS_LIMIT = 256 * 1024


@lru_cache(maxsize=8192)
def subdomain_problems(name: str) -> tuple[str, ...]:
    """Why a name is no DNS subdomain."""
    matches = DNS_SUBDOMAIN.match(name)
    if matches and len(name) <= 253:
        return ()
    found = ("must be no more than 253 characters",) if len(name) > 253 else ()
    return found if matches else (*found, SUBDOMAIN_RULE)


@lru_cache(maxsize=8192)
def label_problems(name: str) -> tuple[str, ...]:
    """Why a name is no DNS label."""
    found = ["must be no more than 63 characters"] if len(name) > 63 else []
    if DNS_LABEL.match(name):
        return tuple(found)
    return (*found, "must not contain dots" if DNS_SUBDOMAIN.match(name) else LABEL_RULE)


@lru_cache(maxsize=8192)
def dns_1035_problems(name: str) -> tuple[str, ...]:
    """Why a name is no service name."""
    found = ["must be no more than 63 characters"] if len(name) > 63 else []
    return tuple(found if DNS_1035.match(name) else [*found, DNS_1035_RULE])


def path_problems(name: str) -> tuple[str, ...]:
    """Why a name cannot stand in a path (all that RBAC objects ask for)."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in name)


@lru_cache(maxsize=8192)
def qualified_problems(name: str) -> tuple[str, ...]:
    """Why a name is no `prefix/name` of a label, annotation, gate or resource."""
    parts = name.split("/")
    if len(parts) > 2:
        return (
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyName')",
        )
    found: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {problem}" for problem in subdomain_problems(parts[0])]
    if not parts[-1]:
        found.append("name part must be non-empty")
    elif len(parts[-1]) > 63:
        found.append("name part must be no more than 63 bytes")
    if not QUALIFIED.match(parts[-1]):
        found.append(NAME_PART_RULE)
    return tuple(found)


@lru_cache(maxsize=8192)
def value_problems(value: str) -> tuple[str, ...]:
    """Why a text is no label value."""
    found = ["must be no more than 63 bytes"] if len(value) > 63 else []
    return tuple(found if LABEL_VALUE.match(value) else [*found, VALUE_RULE])


def check_labels(labels: Mapping[str, Any] | None, field: str) -> list[FieldError]:
    """Label keys and values."""
    found: list[FieldError] = []
    for key, value in (labels or {}).items():
        for problem in qualified_problems(key):
            found.append(invalid(field, key, problem))
        for problem in value_problems(value):
            found.append(invalid(field, value, problem))
    return found


def check_annotations(annotations: Mapping[str, str] | None, field: str) -> list[FieldError]:
    """Annotation keys, and the size of all of them together."""
    found: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        found += [invalid(field, key, problem) for problem in qualified_problems(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_LIMIT:
        found.append(too_long(field, ANNOTATIONS_LIMIT))
    return found


def check_address(address: str, field: str) -> list[FieldError]:
    """An IP address."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [invalid(field, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def check_cidr(text: str, field: str) -> list[FieldError]:
    """A block of IP addresses."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return [invalid(field, text, _CIDR_RULE)]
    return [] if "/" in text else [invalid(field, text, _CIDR_RULE)]


def check_host(name: str, field: str) -> list[FieldError]:
    """The name of a host, which is no address."""
    found = [invalid(field, name, problem) for problem in subdomain_problems(name)]
    if not check_address(name, field):
        found.append(invalid(field, name, "must be a DNS name, not an IP address"))
    return found


@lru_cache(maxsize=1024)
def port_name_problems(name: str) -> tuple[str, ...]:
    """Why a text is no name of a port."""
    found = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not PORT_NAME.match(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def check_port(port: int | str, field: str) -> list[FieldError]:
    """The number of a port, or its name."""
    if isinstance(port, int):
        return [] if 0 < port < 65536 else [invalid(field, port, "must be between 1 and 65535, inclusive")]
    return [invalid(field, port, problem) for problem in port_name_problems(port)]


def check_descending(path: str, field: str) -> list[FieldError]:
    """A path that leads nowhere but down."""
    found = [invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    if ".." in path.split("/"):
        found.append(invalid(field, path, "must not contain '..'"))
    return found


def check_file_path(path: str, field: str) -> list[FieldError]:
    """A path below a volume that leads nowhere but down, and is none of the volume's own."""
    found = check_descending(path, field)
    if path.startswith("..") and not path.startswith("../") and path != "..":
        found.append(invalid(field, path, "must not start with '..'"))
    return found


def check_config_key(key: str, field: str) -> list[FieldError]:
    """A key of a ConfigMap or a Secret."""
    found = [invalid(field, key, "must be no more than 253 characters")] if len(key) > 253 else []
    if not CONFIG_KEY.match(key):
        found.append(invalid(field, key, KEY_RULE))
    if key in (".", ".."):
        found.append(invalid(field, key, f"must not be '{key}'"))
    elif key.startswith(".."):
        found.append(invalid(field, key, "must not start with '..'"))
    return found


def check_domain_path(name: str, field: str) -> list[FieldError]:
    """Something below a domain, like `acme.io/foo`."""
    prefix, slash, rest = name.partition("/")
    if not name:
        return [required(field)]
    if not slash or not prefix or not rest:
        return [invalid(field, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return [invalid(field, prefix, problem) for problem in subdomain_problems(prefix)]


def check_identifier(name: str, field: str) -> list[FieldError]:
    """A name as programs use it."""
    found = [too_long(field, 32)] if len(name) > 32 else []
    return found if _IDENTIFIER.match(name) else [*found, invalid(field, name, _IDENTIFIER_RULE)]


def check_label_name(name: Any, field: str) -> list[FieldError]:
    """A name that must be given and be a DNS label."""
    if not name:
        return [required(field)]
    return [invalid(field, name, problem) for problem in label_problems(name)]
