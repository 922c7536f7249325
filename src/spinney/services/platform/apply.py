"""The one place where the platform writes: it applies what differs, and deletes what is no longer wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import structlog

from spinney.api import labels
from spinney.api.meta import Json, Object, Resource, convert
from spinney.api.owners import controller_reference
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.desired import Drift, Step, Wanted, plan, plan_pruning
from spinney.kube.errors import ApiError, Forbidden
from spinney.kube.writer import Writer
from spinney.services.platform.deployments import CERTIFICATES, MANAGED

_log = structlog.get_logger("spinney.platform")

# What was applied last, so that a field that is no longer wanted is noticed: it is missing in what we compare with.
_APPLIED = "spinney.dev/applied"
_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
# Every kind that we make; accounts first, since pods need them.
KINDS: tuple[tuple[str, str], ...] = (
    ("v1", "ServiceAccount"),
    (_RBAC, "ClusterRole"),
    (_RBAC, "ClusterRoleBinding"),
    (_RBAC, "Role"),
    (_RBAC, "RoleBinding"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("policy/v1", "PodDisruptionBudget"),
    (_ADMISSION, "MutatingWebhookConfiguration"),
    (_ADMISSION, "ValidatingWebhookConfiguration"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
    ("monitoring.coreos.com/v1", "Prometheus"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
)

Place = tuple[str, str, str]  # kind, namespace, name


@dataclass
class Outcome:
    """What became of an application: kinds that the cluster does not serve, and what it refused."""

    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def place_of(document: Json) -> Place:
    """Where an object is."""
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


class Applier:
    """Brings the objects of one owner to what is wanted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._writer = Writer(client)
        self._discovery = Discovery(client)

    async def present(self, namespaces: Iterable[str], without_secrets: Iterable[str]) -> dict[Place, Json]:
        """All objects that carry our label, in these namespaces and outside of any.

        In the namespaces without Secrets of ours, such as that of reservation pods, we may read none.
        """
        namespaces = {*namespaces}
        everywhere = {*namespaces, *without_secrets}
        selector = ",".join(f"{key}={value}" for key, value in MANAGED.items())
        by_place: dict[Place, Json] = {}
        for api_version, kind in KINDS:
            resource = await self._discovery.resource(api_version, kind)
            if resource is None:
                continue
            if kind == "Secret":
                by_place |= await self._certificates(resource, namespaces)
                continue
            for namespace in sorted(everywhere) if resource.namespaced else [""]:
                response = await self._client.call("GET", resource.path(namespace), [("labelSelector", selector)])
                for item in msgspec.json.decode(response.body).get("items") or ():
                    document = {"apiVersion": api_version, "kind": kind, **item}
                    by_place[place_of(document)] = document
        return by_place

    async def _certificates(self, resource: Resource, namespaces: Iterable[str]) -> dict[Place, Json]:
        """Our Secrets, read by name: so we need no right to list Secrets."""
        by_place: dict[Place, Json] = {}
        for namespace in set(namespaces):
            for name in CERTIFICATES:
                # The namespace of a Config may be another than the one that we may read Secrets in.
                with suppress(Forbidden):
                    secret = await self._client.find(resource, (namespace, name))
                    if secret is not None:
                        by_place["Secret", namespace, name] = {"apiVersion": "v1", "kind": "Secret", **secret}
        return by_place

    async def apply(self, owner: Object, wanted: Sequence[Json], present: dict[Place, Json]) -> Outcome:
        """Write what differs, then remove what the owner has and should not."""
        outcome = Outcome()
        kept: list[Wanted] = []
        order = {entry: index for index, entry in enumerate(KINDS)}
        for document in sorted(wanted, key=lambda each: order[each["apiVersion"], each["kind"]]):
            resource = await self._discovery.resource(document["apiVersion"], document["kind"])
            if resource is None:
                outcome.missing.append(f"{document['kind']} of {document['apiVersion']}")
                continue
            kept.append(Wanted(resource, _owned(document, owner), Drift.APPLY))
            if (step := plan(kept[-1], present.get(place_of(document)))) is not None:
                await self._write(step, outcome)
        for step in plan_pruning(kept, await self._owned_by(owner, present.values())):
            await self._write(step, outcome)
        return outcome

    async def _owned_by(self, owner: Object, present: Iterable[Json]) -> list[tuple[Resource, Object]]:
        owned: list[tuple[Resource, Object]] = []
        for document in present:
            resource = await self._discovery.resource(document["apiVersion"], document["kind"])
            live = convert(Object, document)
            if resource is not None and _is_owned(live, owner):
                owned.append((resource, live))
        return owned

    async def keep(self, wanted: Sequence[Json]) -> list[str]:
        """Create what is missing and outlives its owner; nothing here is ever changed or removed."""
        errors = []
        for document in wanted:
            kind, namespace, name = place_of(document)
            resource = await self._discovery.resource(document["apiVersion"], kind)
            if resource is None or await self._client.find(resource, (namespace, name)) is not None:
                continue
            try:
                await self._writer.create(resource, document)
            except ApiError as error:
                errors.append(f"{kind} {name}: {error}")
        return errors

    async def _write(self, step: Step, outcome: Outcome) -> None:
        namespace, name = step.key
        try:
            await self._writer.apply(step)
        except ApiError as error:
            outcome.errors.append(f"{step.resource.kind} {name}: {error}")
            return
        event = "platform.removed" if step.act == "delete" else "platform.applied"
        _log.info(event, kind=step.resource.kind, namespace=namespace, name=name)


def _owned(document: Json, owner: Object) -> Json:
    digest = hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()[:16]
    metadata = document["metadata"]
    annotations = {**metadata.get("annotations", {}), _APPLIED: digest}
    owned = {**metadata, "annotations": annotations, "ownerReferences": [controller_reference(owner)]}
    return {**document, "metadata": owned}


def _is_owned(live: Object, owner: Object) -> bool:
    managed = live.metadata.labels.get(labels.MANAGED_BY) == labels.KAI_OPERATOR
    return managed and any(reference.uid == owner.uid for reference in live.metadata.owner_references)
