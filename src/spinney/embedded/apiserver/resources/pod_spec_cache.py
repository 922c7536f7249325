"""Pod specs that were worked out before: pods of one template differ in nothing but their metadata.

What a spec becomes on its way into the store (its form, defaults, priority, tolerations, checks, owned fields) follows
from the spec and from the classes that it may name. So it is worked out for the first pods of a template and shared by
those after them: nothing here is ever changed in place. When a class changes, everything is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec import Raw

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.admission.quotas import TABLE as QUOTAS
from spinney.embedded.apiserver.admission.webhooks import Admission
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources import pod_admission, token_volumes
from spinney.embedded.apiserver.store.store import Event, Fields, Item, Store
from spinney.embedded.apiserver.write.field_sets import FieldSet

PODS = "/pods"
# What a spec is worked out by, beside itself. Limit ranges write into metadata too: where they are, nothing is shared.
_CLASSES = frozenset(("scheduling.k8s.io/priorityclasses", "node.k8s.io/runtimeclasses"))
_LIMIT_RANGES = "/limitranges"
_MOST = 1024


@dataclass(frozen=True, slots=True)
class PodSpec:
    """What was worked out: the spec but for its account's token, what its author owns of it, and what selectors ask."""

    spec: Json
    owned: FieldSet | Raw
    fields: Fields
    quality: str
    # The spec as it is kept, in pieces between which the name of the token's volume stands.
    encoded: tuple[bytes, ...] = ()

    def put_into(self, document: Json) -> tuple[Json, Json]:
        """An object as sent with this spec in place of its own, and the part of it that needs no look any more."""
        return {**document, "spec": self.spec}, {"spec": self.spec}

    def start(self, core: Core, call: Call, pod: Json) -> None:
        """Give a pod what it starts with: its account's token and its first status."""
        pod_admission.check_account(core, call, self.spec)
        pod["status"] = pod_admission.first_status(core, self.spec, self.quality)
        if self.encoded:
            name = token_volumes.volume_name(core) if len(self.encoded) > 1 else ""
            pod["spec"] = Raw(name.encode().join(self.encoded))
        else:
            pod["spec"] = token_volumes.with_token(core, self.spec)


class PodSpecs:
    """Worked-out specs by what was sent, from the third pod of a template on: others are hardly worth it."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission
        # As plain data and encoded; None where it was sent only once so far.
        self._known: dict[bytes, tuple[PodSpec, PodSpec] | None] = {}

    def sent(self, call: Call, document: Json) -> bytes:
        """What a spec is known by; nothing where it has to be worked out in any case."""
        if call.kind.table != PODS or self._store.table(_LIMIT_RANGES).items:
            return b""
        spec = document.get("spec")
        if not isinstance(spec, dict):
            return b""
        # Who ignores unknown fields leaves specs with some behind, which others may want to hear of.
        return (b"ignoring " if call.field_validation == "Ignore" else b"") + encode(spec)

    def find(self, call: Call, sent: bytes) -> PodSpec | None:
        """What such a spec became before: encoded, unless somebody reads it on its way to the store."""
        found = self._known.get(sent)
        if found is None:
            return None
        plain, encoded = found
        is_read = self._admission.looks_at(call.kind) or self._store.table(QUOTAS).items
        return plain if is_read else encoded

    def keep(self, sent: bytes, spec: Json, document: Json, item: Item) -> None:
        """Remember what a spec became, from the pod that was made by it, once it has been sent before."""
        if sent not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[sent] = None
            return
        entries = document["metadata"].get("managedFields") or ()
        owned = next((entry["fieldsV1"].get("f:spec") for entry in entries), None)
        started = document["spec"]
        name = started["volumes"][-1]["name"].encode() if started is not spec else b""
        if owned is None or (name and name in sent):
            return
        pieces = encode(started).split(name) if name else [encode(started)]
        plain = PodSpec(spec, owned, item.fields, document["status"]["qosClass"])
        encoded = replace(plain, owned=Raw(encode(owned)), encoded=tuple(pieces))
        self._known[sent] = plain, encoded

    def follow(self, table: str, event: Event) -> None:
        """Forget everything when a class changes that specs depend on."""
        if table in _CLASSES:
            self._known.clear()
