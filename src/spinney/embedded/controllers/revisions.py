"""Names for pod templates: the short hash that Deployments and StatefulSets put on what they make."""

from __future__ import annotations

from spinney.api.meta import Json, encode

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Json, collisions: int = 0) -> str:
    """A name of about ten letters that changes with the template."""
    number = 0x811C9DC5
    for byte in encode(_ordered(template)) + str(collisions).encode():
        number = ((number ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value
