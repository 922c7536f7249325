"""A cache of processed pod specs: pods of one template differ only in their metadata.

Defaults, priority, tolerations, checks and managed fields follow from the spec and from the classes that it names. They
are computed for the first pods of a template and shared by later ones, so cached data is never changed in place. When a
class changes, the cache is emptied.
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
# Limit ranges also write metadata: with them, nothing is cached.
_LIMIT_RANGES = "/limitranges"
# Specs, and bytes of all of them as they were sent.
_MOST = 1024
_MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PodSpec:
    """A processed spec without its token volume, with its managed fields and selectable fields."""

    spec: Json
    owned: FieldSet | Raw
    fields: Fields
    quality: str
    # The stored spec in pieces, to be joined by the name of the token volume.
    encoded: tuple[bytes, ...] = ()

    def put_into(self, document: Json) -> tuple[Json, Json]:
        """The object with this spec in place of its own, and the part of it that was checked before."""
        return {**document, "spec": self.spec}, {"spec": self.spec}

    def start(self, core: Core, call: Call, pod: Json) -> None:
        """Set the token volume and the first status of a pod."""
        pod_admission.check_account(core, call, self.spec)
        pod["status"] = pod_admission.first_status(core, self.spec, self.quality)
        if self.encoded:
            name = token_volumes.volume_name(core) if len(self.encoded) > 1 else ""
            pod["spec"] = Raw(name.encode().join(self.encoded))
        else:
            pod["spec"] = token_volumes.with_token(core, self.spec)


class PodSpecs:
    """Processed specs by the spec that was sent, used from the third pod of a template on."""

    # The kinds that a processed spec depends on.
    tables: frozenset[str] | None = frozenset(("scheduling.k8s.io/priorityclasses", "node.k8s.io/runtimeclasses"))

    def __init__(self, store: Store, admission: Admission) -> None:
        self._limit_ranges, self._quotas = store.table(_LIMIT_RANGES), store.table(QUOTAS)
        self._admission = admission
        # As plain data and encoded; None where the spec was sent only once so far.
        self._known: dict[tuple[bool, bytes], tuple[PodSpec, PodSpec] | None] = {}
        self._size = 0

    def sent(self, call: Call, document: Json) -> bytes:
        """The encoded spec of a pod that was sent; empty where it cannot be cached."""
        if call.kind.table != PODS or self._limit_ranges.items:
            return b""
        spec = document.get("spec")
        return encode(spec) if isinstance(spec, dict) else b""

    def find(self, call: Call, sent: bytes) -> PodSpec | None:
        """The processed spec: encoded, unless admission or quotas have to read it."""
        specs = self._known.get(_key(call, sent))
        if specs is None:
            return None
        plain, encoded = specs
        is_read = self._admission.applies_to(call.kind) or self._quotas.items
        return plain if is_read else encoded

    def keep(self, call: Call, sent: bytes, spec: Json, document: Json, item: Item) -> None:
        """Cache the processed spec of a new pod if the same spec was sent before."""
        key = _key(call, sent)
        if key not in self._known:
            if len(self._known) >= _MOST or self._size + len(sent) > _MOST_BYTES:
                self._forget()
            if len(sent) <= _MOST_BYTES // 16:
                self._known[key] = None
                self._size += len(sent)
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
        self._known[key] = plain, encoded

    def follow(self, table: str, event: Event) -> None:
        """Forget everything when a class changes that specs depend on."""
        self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self._size = 0


def _key(call: Call, sent: bytes) -> tuple[bool, bytes]:
    """With fieldValidation=Ignore a spec may have unknown fields, of which other clients have to be warned."""
    return call.field_validation == "Ignore", sent
