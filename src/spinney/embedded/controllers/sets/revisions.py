"""Revisions of pod templates: the short hash that workloads put on what they make, and what keeps a template."""

from __future__ import annotations

from spinney.api.meta import Json, Object, encode
from spinney.api.owners import controller_reference

# The label that says which revision a pod is of.
REVISION = "controller-revision-hash"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Json, collisions: int = 0) -> str:
    """A name of about ten letters that changes with the template."""
    number = 0x811C9DC5
    for byte in encode(_ordered(template)) + str(collisions).encode():
        number = ((number ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def revision(owner: Object, name: str, template: Json, labels: dict[str, str], number: int) -> Json:
    """A ControllerRevision that keeps a template of its owner."""
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": [controller_reference(owner)]},
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": number,
    }


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value
