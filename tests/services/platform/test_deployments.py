"""What Config says reaches the objects of each service, field by field; what it leaves out is upstream's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.kaiconfig import ConfigSpec
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, convert
from spinney.app.components import load
from spinney.services.platform.deployments import plan_deployment
from spinney.services.platform.processes import plan_processes, plan_scheduler
from spinney.services.platform.settings import PlatformSettings
from spinney.services.platform.webhooks import plan_webhooks

POD = ("Deployment", "spec", "template", "spec")
CONTAINER = (*POD, "containers", 0)


def objects(spec: Json, name: str) -> list[Json]:
    """The objects of one service."""
    config = convert(ConfigSpec, spec)
    shard = convert(SchedulingShard, {"metadata": {"name": "default"}, "spec": {}})
    processes = [*plan_processes(config, "spinney:1"), plan_scheduler(shard, config)]
    process = next(each for each in processes if each is not None and each.name == name)
    return plan_deployment(process, config, "spinney:1")


def at(documents: list[Json], kind: str, *path: str | int) -> Any:
    """A field of the object of a kind; None where there is none."""
    value: Any = next((each for each in documents if each["kind"] == kind), None)
    for step in path:
        if value is None or (isinstance(step, str) and step not in value):
            return None
        value = value[step]
    return value


APART = {
    "labelSelector": {"matchLabels": {"app": "binder"}},
    "topologyKey": "kubernetes.io/hostname",
}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": APART}]}
NODES = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
SMALL = {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"cpu": "100m", "memory": "512Mi"}}
VPA = {"enabled": True, "updatePolicy": {"updateMode": "Auto"}}

ROWS: list[tuple[Json, str, tuple[str | int, ...], Any]] = [
    ({}, "binder", ("Deployment", "spec", "replicas"), 1),
    ({"global": {"replicaCount": 3}}, "binder", ("Deployment", "spec", "replicas"), 3),
    ({"global": {"replicaCount": 3}, "binder": {"replicas": 2}}, "binder", ("Deployment", "spec", "replicas"), 2),
    ({"global": {"replicaCount": 3}}, "node-scale-adjuster", ("Deployment", "spec", "replicas"), 1),
    ({}, "pod-grouper", (*CONTAINER, "resources"), SMALL),
    ({}, "binder", (*CONTAINER, "resources", "limits"), {"cpu": "100m", "memory": "200Mi"}),
    ({}, "kai-scheduler-default", (*CONTAINER, "resources", "limits"), {"cpu": "700m", "memory": "512Mi"}),
    (
        {"binder": {"service": {"resources": {"limits": {"cpu": "2"}}}}},
        "binder",
        (*CONTAINER, "resources"),
        {"limits": {"cpu": "2"}},
    ),
    ({}, "binder", (*CONTAINER, "image"), "spinney:1"),
    (
        {"binder": {"service": {"image": {"repository": "r.io/x", "name": "b", "tag": "v2", "pullPolicy": "Always"}}}},
        "binder",
        (*CONTAINER, "image"),
        "r.io/x/b:v2",
    ),
    ({"binder": {"service": {"image": {"pullPolicy": "Always"}}}}, "binder", (*CONTAINER, "imagePullPolicy"), "Always"),
    ({}, "binder", (*CONTAINER, "securityContext", "runAsUser"), 10000),
    ({"global": {"securityContext": {"runAsUser": 7}}}, "binder", (*CONTAINER, "securityContext"), {"runAsUser": 7}),
    ({"global": {"openshift": True}}, "binder", (*CONTAINER, "securityContext"), None),
    ({"global": {"nodeSelector": {"a": "b"}}}, "binder", (*POD, "nodeSelector"), {"a": "b"}),
    ({"global": {"tolerations": [{"operator": "Exists"}]}}, "binder", (*POD, "tolerations"), [{"operator": "Exists"}]),
    ({"global": {"priorityClassName": "high"}}, "binder", (*POD, "priorityClassName"), "high"),
    (
        {"global": {"imagesPullSecret": "old", "additionalImagePullSecrets": ["new", "old"]}},
        "binder",
        (*POD, "imagePullSecrets"),
        [{"name": "new"}, {"name": "old"}],
    ),
    ({}, "binder", (*POD, "affinity", "podAntiAffinity"), PREFERRED),
    (
        {"global": {"requireDefaultPodAntiAffinityTerm": True}},
        "binder",
        (*POD, "affinity", "podAntiAffinity"),
        {"requiredDuringSchedulingIgnoredDuringExecution": [APART]},
    ),
    ({"global": {"affinity": NODES}}, "binder", (*POD, "affinity"), {**NODES, "podAntiAffinity": PREFERRED}),
    (
        {
            "global": {"affinity": NODES},
            "binder": {"service": {"affinity": {"nodeAffinity": {}, "podAntiAffinity": {}}}},
        },
        "binder",
        (*POD, "affinity"),
        {"nodeAffinity": {}, "podAntiAffinity": {}},
    ),
    ({}, "admission", ("PodDisruptionBudget",), None),
    (
        {"admission": {"service": {"podDisruptionBudget": {"enabled": True}}}},
        "admission",
        ("PodDisruptionBudget",),
        None,
    ),
    (
        {"admission": {"replicas": 2, "service": {"podDisruptionBudget": {"enabled": True}}}},
        "admission",
        ("PodDisruptionBudget", "spec", "maxUnavailable"),
        1,
    ),
    ({}, "binder", ("VerticalPodAutoscaler",), None),
    (
        {"global": {"vpa": {"enabled": True}}},
        "binder",
        ("VerticalPodAutoscaler", "spec", "updatePolicy"),
        {"updateMode": "InPlaceOrRecreate"},
    ),
    ({"binder": {"vpa": VPA}}, "binder", ("VerticalPodAutoscaler", "spec", "updatePolicy"), {"updateMode": "Auto"}),
    ({}, "kai-scheduler-default", (*POD, "serviceAccountName"), "scheduler"),
    ({}, "kai-scheduler-default", ("Service", "spec", "clusterIP"), "None"),
    ({}, "kai-scheduler-default", ("Service", "spec", "selector"), {"app": "kai-scheduler-default"}),
    ({"scheduler": {"replicas": 2}}, "kai-scheduler-default", ("Service", "spec", "selector"), None),
    (
        {"scheduler": {"schedulerService": {"type": "NodePort"}}},
        "kai-scheduler-default",
        ("Service", "spec", "type"),
        "NodePort",
    ),
    ({"namespace": "elsewhere"}, "binder", ("Service", "metadata", "namespace"), "elsewhere"),
]


@pytest.mark.parametrize(("spec", "name", "path", "wanted"), ROWS)
def test_config_reaches_the_objects(spec: Json, name: str, path: tuple[str | int, ...], wanted: Any) -> None:
    """One field of Config, one field of what is deployed."""
    kind, *rest = path
    assert at(objects(spec, name), str(kind), *rest) == wanted


@pytest.mark.parametrize(
    ("spec", "name", "words"),
    [
        ({"global": {"jsonLog": True}}, "binder", ["--log-format", "json"]),
        (
            {"binder": {"service": {"k8sClientConfig": {"qps": 7, "burst": 9}}}},
            "binder",
            ["--qps", "7", "--burst", "9"],
        ),
        ({"podGrouper": {"k8sClientConfig": {"qps": 5}}}, "pod-grouper", ["--qps", "5"]),
        ({}, "admission", ["--webhook-cert", "/etc/spinney-webhook/tls.crt"]),
        ({"namespace": "n"}, "binder", ["--namespace", "n"]),
    ],
)
def test_config_reaches_the_command_line(spec: Json, name: str, words: list[str]) -> None:
    """What a process must know before it reads its settings."""
    arguments = at(objects(spec, name), *CONTAINER, "args")
    start = arguments.index(words[0])
    assert arguments[start : start + len(words)] == words


def hooks(spec: Json, name: str, annotations: Mapping[str, str] | None = None) -> list[Json]:
    """The registrations of a service's webhooks."""
    config = convert(ConfigSpec, spec)
    process = next(each for each in plan_processes(config, "i", annotations) if each.name == name)
    return plan_webhooks(
        process, load(process.component), config, "trusted", PlatformSettings(left_out_namespaces=("quiet",))
    )


def test_webhooks_have_upstreams_names_paths_and_selectors() -> None:
    """Pods of our scheduler outside of the system's namespaces, as selectors of Config narrow them further."""
    spec = {
        "namespace": "n",
        "global": {"podLabelSelector": {"a": "b"}, "namespaceLabelSelector": {"c": "d"}},
        "admission": {"queueLabelSelector": True, "mutatingWebhookConfigurationName": "mine"},
    }
    mutating, validating = hooks(spec, "admission")
    assert (mutating["metadata"]["name"], validating["metadata"]["name"]) == ("mine", "validating-kai-admission")
    (pods,) = mutating["webhooks"]
    assert (pods["failurePolicy"], pods["reinvocationPolicy"], pods["sideEffects"]) == ("Fail", "IfNeeded", "None")
    assert pods["clientConfig"]["service"] == {
        "name": "admission",
        "namespace": "n",
        "path": "/mutate--v1-pod",
        "port": 443,
    }
    assert pods["objectSelector"] == {"matchLabels": {"a": "b"}}
    assert pods["namespaceSelector"] == {
        "matchLabels": {"c": "d"},
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "n"]},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["quiet"]},
            {"key": "kai.scheduler/queue", "operator": "Exists"},
        ],
    }
    paths = [hook["clientConfig"]["service"]["path"] for hook in validating["webhooks"]]
    assert paths == ["/validate--v1-pod", "/validate-kai-scheduler-v1alpha1-topology"]
    reviewed = {labels.REVIEW_QUEUE_ACCESS: "true"}
    assert hooks(spec, "admission", reviewed)[1]["webhooks"][-1]["name"] == "queues.admission.kai.scheduler"
    (queues,) = hooks({"queueController": {"webhooks": {"webhookConfigurationNamePrefix": "q-"}}}, "queue-controller")
    assert queues["metadata"]["name"] == "q-kai-scheduler"
    assert queues["webhooks"][0]["rules"][0]["operations"] == ["CREATE", "UPDATE", "DELETE"]
