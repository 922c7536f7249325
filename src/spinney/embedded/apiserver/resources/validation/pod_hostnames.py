"""Checks of a pod's DNS settings and host aliases."""

from __future__ import annotations

import re

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, too_long
from spinney.embedded.apiserver.resources.validation import names

_SERVERS, _SEARCHES, _SEARCH_LENGTH = 3, 32, 2048
_SEARCH = re.compile(r"^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*\Z")
_SEARCH_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)


def check_name_servers(spec: Json, path: str) -> list[FieldError]:
    """Check the `dnsConfig` of a pod."""
    config, alone = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    if config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")] if alone else []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if alone and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [required(f"{path}.nameservers", detail)]
    errors: list[FieldError] = []
    if len(servers) > _SERVERS:
        detail = f"must not have more than {_SERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, detail))
    for at, address in enumerate(servers):
        errors += names.check_address(address, f"{path}.nameservers[{at}]")
    if len(searches) > _SEARCHES:
        errors.append(invalid(f"{path}.searches", searches, f"must not have more than {_SEARCHES} search paths"))
    if len(" ".join(searches)) > _SEARCH_LENGTH:
        detail = f"must not have more than {_SEARCH_LENGTH} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, detail))
    for at, search in enumerate(searches):
        if search != "." and not _SEARCH.match(search.removesuffix(".")):
            errors.append(invalid(f"{path}.searches[{at}]", search.removesuffix("."), _SEARCH_RULE))
    for at, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{at}]", "must not be empty"))
    return errors


def check_aliases(spec: Json, path: str) -> list[FieldError]:
    """Check the `hostAliases` of a pod."""
    errors: list[FieldError] = []
    for at, alias in enumerate(spec.get("hostAliases") or ()):
        errors += names.check_address(alias.get("ip", ""), f"{path}[{at}].ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            where = f"{path}[{at}].hostnames[{number}]"
            errors += [invalid(where, name, problem) for problem in naming.subdomain_problems(name)]
    return errors


def check_override(spec: Json, path: str) -> list[FieldError]:
    """Check the `hostnameOverride` of a pod."""
    name, where = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return []
    errors = [
        forbidden_field(where, f"may not be specified when {key} is true")
        for key in ("setHostnameAsFQDN", "hostNetwork")
        if spec.get(key)
    ]
    if len(name) > 64:
        errors.append(too_long(where, 64))
    return errors + [invalid(where, name, problem) for problem in naming.subdomain_problems(name)]
