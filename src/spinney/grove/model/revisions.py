"""When a template has changed: by content, so that a new operator, or one that takes over, restarts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from spinney.api.grove import PodClique, PodCliqueSet, PodCliqueTemplate
from spinney.api.labels import MNNVL_CLAIM, POD_TEMPLATE_HASH
from spinney.api.meta import Json

# Marks hashes that this operator made; any other is upstream's, and only its content can be compared.
_OURS = "s1-"
# What operators add to a clique's pod spec: it is no part of what the user wrote.
_INJECTED_VARIABLES = "GROVE_"
_ON_DELETE = "OnDelete"


# Revisions of the templates that were asked for last: all replicas of a set share theirs, and ask with every look.
_known: dict[tuple[int, str], tuple[PodCliqueTemplate, str]] = {}
_MOST_KNOWN = 1024


def template_hash(clique: PodCliqueTemplate, priority_class: str) -> str:
    """The revision of one clique's pods."""
    key = (id(clique), priority_class)
    known = _known.get(key)
    # An identity may come again, but not while the object it meant is kept here.
    if known is not None:
        return known[1]
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    revision = _digest(_content(clique, priority_class))
    _known[key] = (clique, revision)
    return revision


def generation_hash(pcs: PodCliqueSet) -> str:
    """The revision of the set: of all its cliques' pods, in order."""
    template = pcs.spec.template
    return _digest([_content(clique, template.priority_class_name) for clique in template.cliques])


def is_on_delete(pcs: PodCliqueSet) -> bool:
    """Whether a set's pods of an old revision stay until someone deletes them."""
    return pcs.spec.update_strategy is not None and pcs.spec.update_strategy.type == _ON_DELETE


def is_ours(revision: str) -> bool:
    """Whether a stored hash was made here, so that it can be compared as such."""
    return revision.startswith(_OURS)


def is_current(found: PodClique, template: PodCliqueTemplate, priority_class: str) -> bool:
    """Whether an existing clique was made from this template, whoever made it."""
    label = found.metadata.labels.get(POD_TEMPLATE_HASH, "")
    if is_ours(label):
        return label == template_hash(template, priority_class)
    return (
        canonical(_without_injected(found.spec.pod_spec)) == canonical(_without_injected(template.spec.pod_spec))
        and _holds(found.metadata.labels, template.labels)
        and _holds(found.metadata.annotations, template.annotations)
    )


def canonical(value: Any) -> Any:
    """Plain data without members that say nothing: null, empty text, empty lists and maps, at any depth."""
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
    env = [found for found in container.get("env") or () if not str(found.get("name")).startswith(_INJECTED_VARIABLES)]
    resources = dict(container.get("resources") or {})
    resources["claims"] = [claim for claim in resources.get("claims") or () if claim.get("name") != MNNVL_CLAIM]
    return {**container, "env": env, "resources": resources}


def _holds(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(found.get(key) == value for key, value in wanted.items())
