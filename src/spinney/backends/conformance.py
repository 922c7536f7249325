"""The tests that every backend must pass, ours and those of third parties.

    import pytest
    from spinney.backends import conformance
    from my_package import BACKEND

    @pytest.mark.parametrize("check", conformance.CHECKS, ids=conformance.title)
    def test_conformance(check):
        check(BACKEND)

A check raises `NotConforming`, which says what is wrong and what is expected. No cluster is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.capabilities import Feature
from spinney.backends.interface import Backend, Cluster
from spinney.backends.kube_scheduler.releases import GANG_APIS, served_by
from spinney.backends.registry import KUBE_SCHEDULER
from spinney.backends.required_features import gang_losses
from spinney.backends.served import Served
from spinney.kube.desired import Wanted, plan
from spinney.kube.difference import covers, without_none

Check = Callable[[Backend], None]
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")
_QUALIFIED = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")


class NotConforming(AssertionError):
    """A backend broke a rule that the operator or its controller relies on."""


def title(check: Check) -> str:
    """A check's name as a test id."""
    return check.__name__.removeprefix("check_")


def gangs() -> Iterator[PodGang]:
    """The gangs that every backend is tried on."""
    for name, groups in _SHAPES.items():
        yield _gang(name, groups)
    yield _gang("packed-0", _SHAPES["roles-0"], required="example.com/block", preferred="example.com/rack")
    yield _gang("important-0", _SHAPES["roles-0"], priority="high")
    yield _gang(f"{'long' * 20}-0", {"workers": (1, 1)})


_SHAPES: dict[str, dict[str, tuple[int, int]]] = {
    "single-0": {"workers": (1, 1)},
    "elastic-0": {"workers": (2, 5)},
    "roles-0": {"router": (1, 1), "prefill": (2, 4), "decode": (4, 8)},
    "zero-0": {"workers": (2, 2), "spare": (0, 3)},
    "many-0": {f"role{index}": (1, 2) for index in range(12)},
}


def check_name_and_gate(backend: Backend) -> None:
    """The name is a label value, the gate a qualified name."""
    _expect(bool(_LABEL.match(backend.name)), f"name {backend.name!r} must be a DNS label: it is a label's value")
    _expect(
        bool(_QUALIFIED.match(backend.gate)), f"gate {backend.gate!r} must be a qualified name, like example.com/gang"
    )


def check_claims_its_own_scheduler(backend: Backend) -> None:
    """It claims the name that it gives to pods, keeps that name, and claims no other scheduler's."""
    own = backend.scheduler_name("")
    _expect(backend.claims(own), f"scheduler_name('') is {own!r}, which claims() does not claim")
    _expect(backend.scheduler_name(own) == own, f"scheduler_name({own!r}) must stay {own!r}")
    foreign = "somebody-elses-scheduler"
    _expect(not backend.claims(foreign), f"claims({foreign!r}) must be False")
    if own != KUBE_SCHEDULER:
        _expect(not backend.claims(KUBE_SCHEDULER), f"claims({KUBE_SCHEDULER!r}) would take every pod that names none")


def check_plain_sets_are_accepted(backend: Backend) -> None:
    """A set that asks for nothing special has no problems."""
    for served in _clusters(backend):
        problems = backend.check(_plain_set(), served)
        _expect(not problems, f"check() refuses a plain set: {problems}")


def check_gang_annotations_are_text(backend: Backend) -> None:
    """Annotations of a gang have qualified names and strings as values."""
    spec = _plain_set().spec.template.cliques[0].spec.pod_spec
    for key, value in backend.gang_annotations(_plain_set(), {"plain-0-workers": spec}).items():
        _expect(bool(_QUALIFIED.match(key)), f"gang_annotations() has the key {key!r}, which is no annotation name")
        _expect(isinstance(value, str), f"gang_annotations()[{key!r}] must be a string, not {type(value).__name__}")


def check_prepare_adds_and_keeps(backend: Backend) -> None:
    """A prepared pod is a copy with its scheduler that keeps all fields; preparing it again changes nothing."""
    for gang, pod in _pods():
        for served in _clusters(backend):
            before = deepcopy(pod)
            prepared = backend.prepare(pod, gang, served)
            _expect(pod == before, "prepare() changed the pod it was handed; it must return a new one")
            kept = {key: value for key, value in pod["spec"].items() if key != "schedulerName"}
            _expect(covers(prepared, {**pod, "spec": kept}), "prepare() lost fields")
            name = prepared["spec"].get("schedulerName")
            _expect(backend.claims(name), f"prepare() set schedulerName {name!r}, which claims() does not claim")
            _expect(backend.prepare(prepared, gang, served) == prepared, "prepare() twice differs from once")
            _labels_fit(prepared)


def check_objects_are_owned_and_named(backend: Backend) -> None:
    """Every object is in the gang's namespace, belongs to the gang, has a legal name, and is one of `resources`."""
    for gang in gangs():
        for served in _clusters(backend):
            for wanted in _objects(backend, gang, served):
                _well_formed(backend, gang, wanted)


def check_rights_cover_resources(backend: Backend) -> None:
    """Its rules let it watch every one of its resources; what it calls CRDs are CRDs."""
    watched = {
        (group, plural)
        for rule in backend.rules
        if {"get", "list", "watch"} <= set(rule.verbs)
        for group in rule.groups
        for plural in rule.resources
    }
    for resource in backend.resources:
        _expect((resource.group, resource.plural) in watched, f"`rules` do not let it watch {resource.plural}")
    for definition in backend.crds:
        kind = definition.get("kind")
        _expect(kind == "CustomResourceDefinition", f"`crds` has a {kind}, which is no CustomResourceDefinition")


def check_gangs_share_nothing(backend: Backend) -> None:
    """Different gangs of a namespace have different objects."""
    for served in _clusters(backend):
        seen: dict[tuple[str, str], str] = {}
        for gang in gangs():
            for wanted in _objects(backend, gang, served):
                key = (wanted.resource.plural, wanted.name)
                other = seen.setdefault(key, gang.name)
                _expect(
                    other == gang.name, f"gangs {other} and {gang.name} both want {wanted.resource.kind} {wanted.name}"
                )


def check_translation_is_stable(backend: Backend) -> None:
    """The same gang gives the same objects, as plain data, and they need no second write once created."""
    for gang in gangs():
        for served in _clusters(backend):
            for wanted, again in zip(_objects(backend, gang, served), _objects(backend, gang, served), strict=True):
                _expect(wanted == again, f"translate() of gang {gang.name} differs from call to call")
                created = json.loads(json.dumps(without_none(wanted.body)))
                step = plan(wanted, created)
                _expect(step is None, f"{wanted.resource.kind} {wanted.name} would be written again at once: {step}")


def check_losses_follow_capabilities(backend: Backend) -> None:
    """Exactly what the capabilities lack is reported as lost."""
    for served in _clusters(backend):
        capabilities = backend.capabilities(served)
        for gang in gangs() if capabilities.api else ():
            expected = {loss.feature for loss in gang_losses(gang, capabilities)}
            reported = {loss.feature for loss in backend.translate(gang, Cluster(served)).losses}
            missing = expected - reported
            _expect(not missing, f"gang {gang.name}: translate() does not report the loss of {missing}")
            unfounded = {feature for feature in reported if capabilities.has(feature) and not _topological(feature)}
            _expect(not unfounded, f"gang {gang.name}: translate() reports {unfounded} lost, which capabilities() has")


def check_nothing_is_promised_where_nothing_is_served(backend: Backend) -> None:
    """A backend that has an API names none and writes no objects where none is served."""
    if not backend.resources:
        return
    _expect(not backend.capabilities(Served()).api, "capabilities() names an API although nothing is served")


def check_ready_answers(backend: Backend) -> None:
    """A gang whose objects exist without a status is ready, and a reason is given."""
    for gang in gangs():
        for served in _clusters(backend):
            objects = [_stored(wanted) for wanted in _objects(backend, gang, served)]
            readiness = backend.ready(gang, objects)
            _expect(readiness.ready, f"gang {gang.name} is not ready although its objects are there: {readiness}")
            _expect(bool(re.fullmatch(r"[A-Za-z]+", readiness.reason)), f"reason {readiness.reason!r} must be one word")


CHECKS: tuple[Check, ...] = (
    check_name_and_gate,
    check_claims_its_own_scheduler,
    check_plain_sets_are_accepted,
    check_gang_annotations_are_text,
    check_prepare_adds_and_keeps,
    check_objects_are_owned_and_named,
    check_rights_cover_resources,
    check_gangs_share_nothing,
    check_translation_is_stable,
    check_losses_follow_capabilities,
    check_nothing_is_promised_where_nothing_is_served,
    check_ready_answers,
)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotConforming(otherwise)


def _clusters(backend: Backend) -> list[Served]:
    return [served_by(release, [backend]) for release in GANG_APIS]


def _objects(backend: Backend, gang: PodGang, served: Served) -> tuple[Wanted, ...]:
    return backend.translate(gang, Cluster(served)).objects if backend.capabilities(served).api else ()


def _well_formed(backend: Backend, gang: PodGang, wanted: Wanted) -> None:
    called = f"{wanted.resource.kind} {wanted.name}"
    _expect(wanted.resource in backend.resources, f"{called} is of a kind that `resources` does not list")
    _expect(bool(_SUBDOMAIN.match(wanted.name)), f"{called}: the name is no DNS subdomain")
    _expect(wanted.namespace == gang.namespace, f"{called} is not in the gang's namespace {gang.namespace}")
    owners = wanted.body["metadata"].get("ownerReferences") or []
    _expect(
        any(owner["uid"] == gang.uid for owner in owners), f"{called} is not owned by its gang: it would stay behind"
    )


def _labels_fit(pod: Json) -> None:
    for key, value in pod["metadata"]["labels"].items():
        _expect(len(value) <= 63, f"prepare() set the label {key} to {value!r}, which has more than 63 characters")


def _topological(feature: Feature) -> bool:
    # A level may be lost that the cluster's topology lacks, although the backend can express levels.
    return feature in (Feature.GANG_REQUIRED, Feature.GANG_PREFERRED)


def _stored(wanted: Wanted) -> Json:
    return {"kind": wanted.resource.kind, **without_none(wanted.body)}


def _gang(
    name: str, groups: dict[str, tuple[int, int]], required: str = "", preferred: str = "", priority: str = ""
) -> PodGang:
    pack = {key: value for key, value in (("required", required), ("preferred", preferred)) if value}
    spec: Json = {
        "podgroups": [
            {
                "name": f"{name}-{role}",
                "minReplicas": least,
                "podReferences": [{"namespace": "team", "name": f"{name}-{role}-{index}"} for index in range(pods)],
            }
            for role, (least, pods) in groups.items()
        ],
        "priorityClassName": priority,
    }
    if pack:
        spec["topologyConstraint"] = {"packConstraint": pack}
    metadata = {"name": name, "namespace": "team", "uid": f"uid-of-{name[:40]}", "generation": 1}
    return convert(PodGang, {"metadata": metadata, "spec": spec})


def _pods() -> Iterator[tuple[PodGang, Json]]:
    for gang in gangs():
        for group in gang.spec.podgroups[:2]:
            own = {labels.PODCLIQUE: group.name[-63:], labels.PODGANG: gang.name[-63:], labels.POD_INDEX: "0"}
            spec = {"containers": [{"name": "main", "image": "busybox"}], "schedulingGates": [{"name": "a.b/gate"}]}
            metadata = {"name": "pod-0", "namespace": "team", "labels": own, "annotations": {"kept": "yes"}}
            yield gang, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _plain_set() -> PodCliqueSet:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    clique = {"name": "workers", "spec": {"replicas": 2, "minAvailable": 2, "podSpec": {"containers": [container]}}}
    body = {
        "metadata": {"name": "plain", "namespace": "team"},
        "spec": {"replicas": 1, "template": {"cliques": [clique]}},
    }
    return convert(PodCliqueSet, body)
