"""Our field names are Kubernetes' field names: the official client's models know every one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from kubernetes import client

from spinney.api import (
    admission,
    apiextensions,
    apps,
    autoscaling,
    batch,
    coordination,
    core,
    discovery,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
)
from spinney.api.meta import ObjectMeta, Struct

KINDS = {
    core.Pod: "V1Pod",
    core.Node: "V1Node",
    core.Namespace: "V1Namespace",
    core.Service: "V1Service",
    core.Endpoints: "V1Endpoints",
    core.ConfigMap: "V1ConfigMap",
    core.Secret: "V1Secret",
    core.ServiceAccount: "V1ServiceAccount",
    core.Event: "CoreV1Event",
    core.PersistentVolume: "V1PersistentVolume",
    core.PersistentVolumeClaim: "V1PersistentVolumeClaim",
    core.ResourceQuota: "V1ResourceQuota",
    rbac.Role: "V1Role",
    rbac.RoleBinding: "V1RoleBinding",
    rbac.ClusterRole: "V1ClusterRole",
    rbac.ClusterRoleBinding: "V1ClusterRoleBinding",
    coordination.Lease: "V1Lease",
    scheduling.PriorityClass: "V1PriorityClass",
    scheduling.WorkloadV1beta1: "V1beta1Workload",
    scheduling.PodGroupV1beta1: "V1beta1PodGroup",
    scheduling.CompositePodGroup: "V1alpha3CompositePodGroup",
    storage.StorageClass: "V1StorageClass",
    storage.CsiNode: "V1CSINode",
    storage.CsiDriver: "V1CSIDriver",
    storage.CsiStorageCapacity: "V1CSIStorageCapacity",
    storage.VolumeAttachment: "V1VolumeAttachment",
    autoscaling.HorizontalPodAutoscaler: "V2HorizontalPodAutoscaler",
    autoscaling.Scale: "V1Scale",
    policy.PodDisruptionBudget: "V1PodDisruptionBudget",
    resource.ResourceClaim: "ResourceV1ResourceClaim",
    resource.ResourceClaimTemplate: "V1ResourceClaimTemplate",
    resource.ResourceSlice: "V1ResourceSlice",
    resource.DeviceClass: "V1DeviceClass",
    batch.Job: "V1Job",
    batch.CronJob: "V1CronJob",
    apps.Deployment: "V1Deployment",
    apps.ReplicaSet: "V1ReplicaSet",
    apps.StatefulSet: "V1StatefulSet",
    apps.DaemonSet: "V1DaemonSet",
    apps.ControllerRevision: "V1ControllerRevision",
    discovery.EndpointSlice: "V1EndpointSlice",
    apiextensions.CustomResourceDefinition: "V1CustomResourceDefinition",
    admission.MutatingWebhookConfiguration: "V1MutatingWebhookConfiguration",
    admission.ValidatingWebhookConfiguration: "V1ValidatingWebhookConfiguration",
}

# Ends of paths that another version of the kind has (Kubernetes 1.35 and 1.36), or another kind that shares the type.
ELSEWHERE = (
    ".workloadRef",
    ".podGroups",
    ".podGroupTemplateRef",
    ".gang.minCount",
    ".gang.minGroupCount",
    ".podGroupTemplates.podGroupTemplates",
    ".compositePodGroupTemplates",
    ".conditions.observedGeneration",
    ".rollingUpdate.partition",
    ".rollingUpdate.maxSurge",
    "CompositePodGroup.spec.resourceClaims",
    "CompositePodGroup.status.resourceClaimStatuses",
    ".compositePodGroupTemplates.resourceClaims",
    "ValidatingWebhookConfiguration.webhooks.reinvocationPolicy",
)


def parts(hint: Any) -> Iterator[type[Struct]]:
    """The wire types inside an annotation."""
    if get_origin(hint) is Annotated:
        yield from parts(get_args(hint)[0])
    elif isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    else:
        for argument in get_args(hint):
            yield from parts(argument)


def unknown(of: type[Struct], model: Any, path: str) -> Iterator[str]:
    """Fields of ours, at any depth, that the official model does not have."""
    types = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    hints = get_type_hints(of, include_extras=True)
    for field, wire in zip(of.__struct_fields__, of.__struct_encode_fields__, strict=True):
        here = f"{path}.{wire}"
        if wire not in types:
            yield here
            continue
        inner = getattr(client, re.findall(r"\w+", types[wire])[-1], None)
        for part in parts(hints[field]):
            # Templates of groups hold templates of groups: once around is enough.
            if hasattr(inner, "openapi_types") and part not in (ObjectMeta, of):
                yield from unknown(part, inner, here)


@pytest.mark.parametrize(("kind", "model"), KINDS.items(), ids=KINDS.values())
def test_every_field_is_a_field_of_kubernetes(kind: type[Struct], model: str) -> None:
    """A misspelt name would read as absent, silently."""
    assert [path for path in unknown(kind, getattr(client, model), model) if not path.endswith(ELSEWHERE)] == []


def test_metadata() -> None:
    """Every object's metadata, too."""
    assert set(unknown(ObjectMeta, client.V1ObjectMeta, "V1ObjectMeta")) == set()
