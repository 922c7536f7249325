"""Names that fit where a target wants them: DNS labels and label values of at most 63 characters."""

from __future__ import annotations

from hashlib import sha256

LABEL_LIMIT = 63


def fitted(name: str, limit: int = LABEL_LIMIT) -> str:
    """The name itself, or a shortened one with a hash, the same on every call and different for different names."""
    flat = name.replace(".", "-")
    if flat == name and len(name) <= limit:
        return name
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{flat[: limit - 9].rstrip('-')}-{digest}"
