"""Rules for the names of objects, label keys and label values."""

from __future__ import annotations

import re

from spinney.api.text_cache import text_cache

DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
DNS_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
DNS_1035 = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?\Z")
QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")
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


@text_cache(8192)
def subdomain_problems(name: str) -> tuple[str, ...]:
    """Reasons why a name is not a DNS subdomain."""
    matches = DNS_SUBDOMAIN.match(name)
    if matches and len(name) <= 253:
        return ()
    problems = ("must be no more than 253 characters",) if len(name) > 253 else ()
    return problems if matches else (*problems, SUBDOMAIN_RULE)


@text_cache(8192)
def label_problems(name: str) -> tuple[str, ...]:
    """Reasons why a name is not a DNS label."""
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    if DNS_LABEL.match(name):
        return tuple(problems)
    return (*problems, "must not contain dots" if DNS_SUBDOMAIN.match(name) else LABEL_RULE)


@text_cache(8192)
def dns_1035_problems(name: str) -> tuple[str, ...]:
    """Reasons why a name is not a DNS-1035 label, as services need it."""
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    return tuple(problems if DNS_1035.match(name) else [*problems, DNS_1035_RULE])


def path_problems(name: str) -> tuple[str, ...]:
    """Reasons why a name cannot be part of a URL path; RBAC objects have no other rule."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in name)


@text_cache(8192)
def qualified_problems(name: str) -> tuple[str, ...]:
    """Reasons why a name is not a `prefix/name` of a label, annotation, gate or resource."""
    parts = name.split("/")
    if len(parts) > 2:
        return (
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyName')",
        )
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain_problems(parts[0])]
    if not parts[-1]:
        problems.append("name part must be non-empty")
    elif len(parts[-1]) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not QUALIFIED.match(parts[-1]):
        problems.append(NAME_PART_RULE)
    return tuple(problems)


@text_cache(8192)
def value_problems(value: str) -> tuple[str, ...]:
    """Reasons why a text is not a label value."""
    problems = ["must be no more than 63 bytes"] if len(value) > 63 else []
    return tuple(problems if LABEL_VALUE.match(value) else [*problems, VALUE_RULE])


@text_cache(1024)
def port_name_problems(name: str) -> tuple[str, ...]:
    """Reasons why a text is not a port name."""
    problems = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not PORT_NAME.match(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)
