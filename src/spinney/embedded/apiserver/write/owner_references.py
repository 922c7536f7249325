"""Owner references in a write."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call

_WARNING = "metadata.ownerReferences contains duplicate entries, each of which is stored once; their UIDs: "


def drop_duplicates(call: Call, metadata: Json) -> None:
    """Drop duplicate owner references, with a warning."""
    owners = metadata.get("ownerReferences") or ()
    if len(owners) < 2:
        return
    kept: dict[tuple[tuple[str, Any], ...], Json] = {}
    duplicate_uids: list[str] = []
    for owner in owners:
        fields = tuple(sorted(owner.items()))
        if fields in kept:
            duplicate_uids.append(owner.get("uid", ""))
        kept[fields] = owner
    if duplicate_uids:
        metadata["ownerReferences"] = list(kept.values())
        call.warnings.append(_WARNING + ", ".join(dict.fromkeys(duplicate_uids)))
