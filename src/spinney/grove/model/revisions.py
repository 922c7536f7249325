"""Whether a template has changed: compared by content, so that a new operator restarts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from spinney.api.grove import PodClique, PodCliqueSet, PodCliqueTemplate
from spinney.api.labels import MNNVL_CLAIM, POD_TEMPLATE_HASH
from spinney.api.meta import Json

# Marks hashes of this operator; for any other only the content can be compared.
_OURS = "s1-"
# What operators add to a clique's pod spec, which the user did not write.
_INJECTED_VARIABLES = "GROVE_"
_ON_DELETE = "OnDelete"


# Hashes of the templates used last: all replicas of a set share a template, and every reconcile needs its hash.
_hashes: dict[tuple[int, str], tuple[PodCliqueTemplate, str]] = {}
_MOST_HASHES = 1024


def template_hash(clique: PodCliqueTemplate, priority_class: str) -> str:
    """The revision of one clique's pods."""
    key = (id(clique), priority_class)
    cached = _hashes.get(key)
    # An id is not reused while its object is kept here.
    if cached is not None:
        return cached[1]
    if len(_hashes) >= _MOST_HASHES:
        _hashes.clear()
    revision = _digest(_content(clique, priority_class))
    _hashes[key] = (clique, revision)
    return revision


def generation_hash(pcs: PodCliqueSet) -> str:
    """The revision of the set: of all its cliques' pods, in order."""
    template = pcs.spec.template
    return _digest([_content(clique, template.priority_class_name) for clique in template.cliques])


def is_recorded(pcs: PodCliqueSet) -> bool:
    """Whether the set's status names the revision of its spec; another operator's hash counts, too."""
    stored = pcs.status.current_generation_hash
    return not is_ours(stored) or stored == generation_hash(pcs)


def is_on_delete(pcs: PodCliqueSet) -> bool:
    """Whether a set's pods of an old revision stay until someone deletes them."""
    return pcs.spec.update_strategy is not None and pcs.spec.update_strategy.type == _ON_DELETE


def is_ours(revision: str) -> bool:
    """Whether this operator computed a stored hash, so that hashes can be compared."""
    return revision.startswith(_OURS)


def is_current(stored: PodClique, template: PodCliqueTemplate, priority_class: str) -> bool:
    """Whether a stored clique has the content of this template, whichever operator created it."""
    label = stored.metadata.labels.get(POD_TEMPLATE_HASH, "")
    if is_ours(label):
        return label == template_hash(template, priority_class)
    return (
        canonical(_without_injected(stored.spec.pod_spec)) == canonical(_without_injected(template.spec.pod_spec))
        and _holds(stored.metadata.labels, template.labels)
        and _holds(stored.metadata.annotations, template.annotations)
    )


def canonical(value: Any) -> Any:
    """Plain data without empty members: null, empty text, lists and maps, at any depth."""
    if isinstance(value, Mapping):
        kept = {key: canonical(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", [], {})}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    return value


def _content(clique: PodCliqueTemplate, priority_class: str) -> Json:
    return {
        "labels": clique.labels,
        "annotations": clique.annotations,
        "podSpec": clique.spec.pod_spec,
        "priorityClassName": priority_class,
    }


def _digest(content: Any) -> str:
    text = msgspec.json.encode(canonical(content), order="sorted")
    return _OURS + sha256(text).hexdigest()[:10]


def _without_injected(pod_spec: Json) -> Json:
    cleaned = dict(pod_spec)
    for kind in ("containers", "initContainers"):
        if pod_spec.get(kind):
            cleaned[kind] = [_clean_container(container) for container in pod_spec[kind]]
    claims = [claim for claim in pod_spec.get("resourceClaims") or () if claim.get("name") != MNNVL_CLAIM]
    # The operators differ in where they put the set's priority class.
    return {**cleaned, "resourceClaims": claims, "priorityClassName": ""}


def _clean_container(container: Json) -> Json:
    env = [item for item in container.get("env") or () if not str(item.get("name")).startswith(_INJECTED_VARIABLES)]
    resources = dict(container.get("resources") or {})
    resources["claims"] = [claim for claim in resources.get("claims") or () if claim.get("name") != MNNVL_CLAIM]
    return {**container, "env": env, "resources": resources}


def _holds(stored: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(stored.get(key) == value for key, value in wanted.items())
