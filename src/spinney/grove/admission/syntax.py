"""How names, labels and environment variables may be written."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
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
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_label(name: str) -> bool:
    """A DNS-1123 label: one part of a subdomain."""
    return len(name) <= 63 and _LABEL.fullmatch(name) is not None


def is_service_name(name: str) -> bool:
    """A DNS-1035 label: what a Service may be called."""
    return is_label(name) and name[0].isalpha()


def is_label_value(value: str) -> bool:
    """A label's value; it may be empty."""
    return value == "" or (len(value) <= 63 and _QUALIFIED.fullmatch(value) is not None)


def is_label_key(key: str) -> bool:
    """A label's or annotation's key, with or without a prefix."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.fullmatch(name) is not None


def is_topology_domain(name: str) -> bool:
    """A free-form domain name of a topology, such as `rack`."""
    return len(name) <= 63 and _DOMAIN.fullmatch(name) is not None


def is_variable(name: str) -> bool:
    """An environment variable's name: printable ASCII without '='."""
    return bool(name) and all(" " <= letter <= "~" and letter != "=" for letter in name)
