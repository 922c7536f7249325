"""Pod specs that were worked out before: pods of one template differ in nothing but their metadata.

What a spec becomes on its way into the store (its form, defaults, priority, tolerations, checks, owned fields) follows
from the spec and from the classes that it may name. So it is worked out for the first pod of a template and shared by
those after it: nothing here is ever changed in place. When a class changes, everything is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spinney.api.meta import Json, encode
from spinney.embedded.fieldsets import FieldSet
from spinney.embedded.store import Fields, Item

if TYPE_CHECKING:
    from spinney.embedded.calls import Call
    from spinney.embedded.server import ApiServer

PODS = "/pods"
# What a spec is worked out by, beside itself. Limit ranges write into metadata too: where they are, nothing is shared.
TABLES = frozenset(("scheduling.k8s.io/priorityclasses", "node.k8s.io/runtimeclasses"))
_LIMIT_RANGES = "/limitranges"
_MOST = 1024


@dataclass(frozen=True, slots=True)
class PodSpec:
    """What was worked out: the spec but for its account's token, what its author owns of it, and what selectors ask."""

    spec: Json
    owned: FieldSet
    fields: Fields

    def put_into(self, document: Json) -> tuple[Json, Json]:
        """An object as sent with this spec in place of its own, and the part of it that needs no look any more."""
        return {**document, "spec": self.spec}, {"spec": self.spec}


class PodSpecs:
    """Worked-out specs by what was sent."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._known: dict[bytes, PodSpec] = {}

    def sent(self, call: Call, document: Json) -> bytes:
        """What a spec is known by; nothing where it has to be worked out in any case."""
        if call.kind.table != PODS or self._server.store.table(_LIMIT_RANGES).items:
            return b""
        spec = document.get("spec")
        if not isinstance(spec, dict):
            return b""
        # Who ignores unknown fields leaves specs with some behind, which others may want to hear of.
        return (b"ignoring " if call.field_validation == "Ignore" else b"") + encode(spec)

    def find(self, sent: bytes) -> PodSpec | None:
        """What such a spec became before."""
        return self._known.get(sent)

    def keep(self, sent: bytes, spec: Json, document: Json, item: Item) -> None:
        """Remember what a spec became, from the pod that was made by it."""
        owned = next(
            (entry["fieldsV1"].get("f:spec") for entry in document["metadata"].get("managedFields") or ()), None
        )
        if owned is None:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[sent] = PodSpec(spec, owned, item.fields)

    def forget(self) -> None:
        """Work everything out anew."""
        self._known.clear()
