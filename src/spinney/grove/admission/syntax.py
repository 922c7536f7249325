"""How names, labels and environment variables may be written."""

from __future__ import annotations

import re

from spinney.api import naming

_DOMAIN = re.compile(r"[a-z][a-z0-9-]*")

SUBDOMAIN_RULE = (
    "use lower case letters, digits, '-' or '.', beginning and ending with a letter or digit (a DNS-1123 subdomain)"
)
SERVICE_RULE = (
    "a Service of this name is made: use lower case letters, digits or '-', beginning with a letter and ending with a "
    "letter or digit (a DNS-1035 label)"
)
LABEL_RULE = "use lower case letters, digits or '-', beginning and ending with a letter or digit (a DNS-1123 label)"
QUALIFIED_RULE = "use letters, digits, '-', '_' or '.', beginning and ending with a letter or digit, at most 63"


def is_subdomain(name: str) -> bool:
    """A DNS-1123 subdomain: what most objects may be called."""
    return not naming.subdomain_problems(name)


def is_label(name: str) -> bool:
    """A DNS-1123 label: one part of a subdomain."""
    return not naming.label_problems(name)


def is_service_name(name: str) -> bool:
    """A DNS-1035 label: what a Service may be called."""
    return not naming.dns_1035_problems(name)


def is_label_value(value: str) -> bool:
    """A label's value; it may be empty."""
    return not naming.value_problems(value)


def is_label_key(key: str) -> bool:
    """A label's or annotation's key, with or without a prefix."""
    return not naming.qualified_problems(key)


def is_topology_domain(name: str) -> bool:
    """A free-form domain name of a topology, such as `rack`."""
    return len(name) <= 63 and _DOMAIN.fullmatch(name) is not None


def is_variable(name: str) -> bool:
    """An environment variable's name: printable ASCII without '='."""
    return bool(name) and all(" " <= letter <= "~" and letter != "=" for letter in name)
