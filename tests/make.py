"""Builders of plain wire objects, used by every test: `make.pod("a").gpus(2).on("node-1").build()`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self, TypeVar

from spinney.api.meta import convert

Json = dict[str, Any]
T = TypeVar("T")


class Builder:
    """A wire object that grows by named steps; `build` hands out a copy."""

    def __init__(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        metadata: Json = {"name": name}
        if namespace:
            metadata["namespace"] = namespace
        self.object: Json = {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    def label(self, key: str, value: str) -> Self:
        """With a label."""
        self.object["metadata"].setdefault("labels", {})[key] = value
        return self

    def annotate(self, key: str, value: str) -> Self:
        """With an annotation."""
        self.object["metadata"].setdefault("annotations", {})[key] = value
        return self

    def annotations(self, **values: str) -> Self:
        """With annotations; underscores in their names stand for dashes."""
        for key, value in values.items():
            self.annotate(key.replace("_", "-"), value)
        return self

    def metadata(self, **members: Any) -> Self:
        """With further members of its metadata."""
        self.object["metadata"] |= members
        return self

    def spec(self, **members: Any) -> Self:
        """With further members of its spec."""
        self.object.setdefault("spec", {}).update(members)
        return self

    def status(self, **members: Any) -> Self:
        """With further members of its status."""
        self.object.setdefault("status", {}).update(members)
        return self

    def build(self) -> Json:
        """The object as plain data."""
        return deepcopy(self.object)

    def typed(self, kind: type[T]) -> T:
        """The object as its wire type."""
        return convert(kind, self.build())


class PodBuilder(Builder):
    """A pod with one container."""

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__("v1", "Pod", name, namespace)
        self.object["spec"] = {"containers": [{"name": "main", "image": "busybox"}]}

    def resources(self, **block: Json) -> Self:
        """With the resources of its container as they are on the wire."""
        self.object["spec"]["containers"][0]["resources"] = block
        return self

    def request(self, **resources: str) -> Self:
        """Asking for resources, as requests and limits alike."""
        block = self.object["spec"]["containers"][0].setdefault("resources", {"requests": {}, "limits": {}})
        for name, amount in resources.items():
            block["requests"][name] = block["limits"][name] = amount
        return self

    def gpus(self, count: int) -> Self:
        """Asking for whole GPUs."""
        return self.request(**{"nvidia.com/gpu": str(count)})

    def gate(self, name: str) -> Self:
        """Held by a scheduling gate."""
        self.object["spec"].setdefault("schedulingGates", []).append({"name": name})
        return self

    def scheduler(self, name: str) -> Self:
        """For a scheduler."""
        self.object["spec"]["schedulerName"] = name
        return self

    def on(self, node: str) -> Self:
        """Already on a node."""
        self.object["spec"]["nodeName"] = node
        return self


class NodeBuilder(Builder):
    """A ready node with GPUs."""

    def __init__(self, name: str, gpus: int = 8, cpu: str = "64", memory: str = "512Gi") -> None:
        super().__init__("v1", "Node", name)
        self.label("kubernetes.io/hostname", name)
        amounts = {"cpu": cpu, "memory": memory, "pods": "110", "nvidia.com/gpu": str(gpus)}
        self.object["status"] = {
            "capacity": amounts,
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        }


def pod(name: str, namespace: str = "default") -> PodBuilder:
    """A pod."""
    return PodBuilder(name, namespace)


def node(name: str, gpus: int = 8) -> NodeBuilder:
    """A node."""
    return NodeBuilder(name, gpus)


class SetBuilder(Builder):
    """A PodCliqueSet that grows clique by clique."""

    def __init__(self, name: str, namespace: str = "default", replicas: int = 1) -> None:
        super().__init__("grove.io/v1alpha1", "PodCliqueSet", name, namespace)
        self.object["spec"] = {"replicas": replicas, "template": {"cliques": []}}

    def clique(self, name: str, replicas: int = 1, min_available: int | None = None, **pod_spec: Any) -> Self:
        """With a clique of one-container pods."""
        spec: Json = {
            "roleName": name,
            "replicas": replicas,
            "podSpec": {"containers": [{"name": "main", "image": "busybox"}], **pod_spec},
        }
        if min_available is not None:
            spec["minAvailable"] = min_available
        self.object["spec"]["template"]["cliques"].append({"name": name, "spec": spec})
        return self

    def group(self, name: str, cliques: list[str], replicas: int = 1, min_available: int = 1) -> Self:
        """With a scaling group over cliques."""
        groups = self.object["spec"]["template"].setdefault("podCliqueScalingGroups", [])
        groups.append({"name": name, "cliqueNames": cliques, "replicas": replicas, "minAvailable": min_available})
        return self


def pcs(name: str, namespace: str = "default", replicas: int = 1) -> SetBuilder:
    """A PodCliqueSet."""
    return SetBuilder(name, namespace, replicas)


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def crd(group: str, kind: str, schema: Json, *, scope: str = "Namespaced", **version: Any) -> Json:
    """A CustomResourceDefinition of one version, v1; `version` adds to it (subresources, printer columns)."""
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


def schema(**properties: Json) -> Json:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties}


class GangBuilder(Builder):
    """A PodGang that grows group by group."""

    def __init__(self, name: str, namespace: str = "default", uid: str = "uid-1") -> None:
        super().__init__("scheduler.grove.io/v1alpha1", "PodGang", name, namespace)
        self.object["metadata"] |= {"uid": uid, "generation": 1}
        self.object["spec"] = {"podgroups": []}

    def group(self, role: str, least: int, pods: int | None = None, required: str = "", preferred: str = "") -> Self:
        """With a pod group of so many pods, of which `least` are the minimum."""
        metadata = self.object["metadata"]
        name = f"{metadata['name']}-{role}"
        references = [
            {"namespace": metadata["namespace"], "name": f"{name}-{i}"} for i in range(least if pods is None else pods)
        ]
        group: Json = {"name": name, "minReplicas": least, "podReferences": references}
        self.object["spec"]["podgroups"].append(group | _packed(required, preferred))
        return self

    def packed(self, required: str = "", preferred: str = "") -> Self:
        """As a whole in one domain of a node label."""
        self.object["spec"] |= _packed(required, preferred)
        return self

    def config(self, name: str, roles: list[str], required: str = "", preferred: str = "") -> Self:
        """With some of its groups packed together."""
        own = self.object["metadata"]["name"]
        config: Json = {"name": f"{own}-{name}", "podGroupNames": [f"{own}-{role}" for role in roles]}
        configs = self.object["spec"].setdefault("topologyConstraintGroupConfigs", [])
        configs.append(config | _packed(required, preferred))
        return self

    def priority(self, name: str) -> Self:
        """With a priority class."""
        self.object["spec"]["priorityClassName"] = name
        return self

    def backend(self, name: str) -> Self:
        """For a backend."""
        return self.label("grove.io/scheduler-backend", name)


def _packed(required: str, preferred: str) -> Json:
    pack = {key: value for key, value in (("required", required), ("preferred", preferred)) if value}
    return {"topologyConstraint": {"packConstraint": pack}} if pack else {}


class QueueBuilder(Builder):
    """A Queue without limits, and without a quota unless told."""

    def __init__(self, name: str, parent: str = "") -> None:
        super().__init__("scheduling.run.ai/v2", "Queue", name)
        self._shares = {key: {"quota": 0, "limit": -1, "overQuotaWeight": 1} for key in ("cpu", "memory", "gpu")}
        self.spec(resources=self._shares, **({"parentQueue": parent} if parent else {}))

    def unlimited(self) -> Self:
        """With an unlimited quota of everything."""
        for share in self._shares.values():
            share["quota"] = -1
        return self

    def gpu(self, **members: float) -> Self:
        """With further members of its share of GPUs."""
        self._shares["gpu"] |= members
        return self


def queue(name: str, parent: str = "") -> QueueBuilder:
    """A Queue."""
    return QueueBuilder(name, parent)


def gang(name: str, namespace: str = "default", uid: str = "uid-1") -> GangBuilder:
    """A PodGang."""
    return GangBuilder(name, namespace, uid)
