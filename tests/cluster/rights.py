"""Rights that accounts have on a cluster, held against what the API server's audit log says they asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from spinney.api.meta import Json
from spinney.testing.cluster.cluster import RealCluster

# Reading is one right: who may list or watch sees all that a `get` shows.
_READING = ("get", "list", "watch")
_FORBIDDEN = 403
_ACCOUNTS = "system:serviceaccount:"
_CREATED = 201
# Rights that the tests before never need, by the reason. A `*` stands for every account, and for nothing else.
_REASONS = {
    "told only when something is wrong": ("*: create events",),
    "told only when the same happens again": ("*: patch events",),
    "for API servers that check owner references (OwnerReferencesPermissionEnforcement)": (
        "spinney-backends: update clustertopologybindings/finalizers.grove.io",
        "spinney-backends: update podgangs/finalizers.scheduler.grove.io",
        "spinney-grove: update podcliques/finalizers.grove.io",
        "spinney-grove: update podcliquescalinggroups/finalizers.grove.io",
        "spinney-grove: update podcliquesets/finalizers.grove.io",
        "spinney-platform: update configs/finalizers.kai.scheduler",
        "spinney-platform: update schedulingshards/finalizers.kai.scheduler",
    ),
    "where nobody else registers its webhooks": (
        "spinney-grove: create mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "spinney-grove: create validatingwebhookconfigurations.admissionregistration.k8s.io",
    ),
    "devices by DRA, of which these nodes have none": (
        "admission: read resourceclaims.resource.k8s.io",
        "admission: read resourceclaimtemplates.resource.k8s.io",
        "binder: create resourceclaims.resource.k8s.io",
        "binder: delete resourceclaims.resource.k8s.io",
        "binder: patch resourceclaims/status.resource.k8s.io",
        "binder: read resourceclaims.resource.k8s.io",
        "spinney-grove: create resourceclaims.resource.k8s.io",
        "spinney-grove: delete resourceclaims.resource.k8s.io",
        "spinney-grove: patch resourceclaims.resource.k8s.io",
        "spinney-grove: read resourceclaimtemplates.resource.k8s.io",
    ),
    "only where Config asks for the queue of running pods": ("admission: patch pods", "admission: read pods"),
    "shared GPUs of containers that ask for an environment, once they change or go": (
        "binder: delete configmaps",
        "binder: patch configmaps",
        "binder: read configmaps",
    ),
    "only where an autoscaler has to see that shared GPUs are missing": (
        "node-scale-adjuster: create pods",
        "node-scale-adjuster: delete pods",
        "node-scale-adjuster: patch pods/status",
    ),
    "volumes that are bound with the pod": (
        "binder: patch persistentvolumeclaims",
        "binder: patch persistentvolumes",
    ),
    "told only when a pod could not be bound": ("binder: patch pods/status",),
    "groups whose owner changes": ("pod-grouper: patch podgroups.scheduling.run.ai",),
    "owners of other workloads than those of the tests": (
        "pod-grouper: read *.apps",
        "pod-grouper: read *.grove.io",
        "pod-grouper: read *.scheduler.grove.io",
        "pod-grouper: read namespaces",
    ),
    "its settings, which these values leave as they are": ("pod-grouper: read configmaps in spinney-system",),
    "requests whose pod is gone": ("scheduler: delete bindrequests.scheduling.run.ai",),
    "for snapshots only": (
        "scheduler: read csidrivers.storage.k8s.io",
        "scheduler: read csistoragecapacities.storage.k8s.io",
    ),
    "gangs of kube-scheduler and YuniKorn that have to begin again": (
        "spinney-backends: delete pods",
        "spinney-backends: patch pods/status",
    ),
    "gangs and topologies that change": (
        "spinney-backends: patch podgangs.scheduler.grove.io",
        "spinney-backends: patch topologies.kai.scheduler",
        "spinney-backends: patch workloads.scheduling.k8s.io",
    ),
    "left to the garbage collector, where that is first": (
        "spinney-backends: delete topologies.kai.scheduler",
        "spinney-backends: delete workloads.scheduling.k8s.io",
    ),
    "settings of other schedulers, which this cluster does not have": (
        "spinney-backends: read configmaps",
        "spinney-backends: read deployments.apps",
    ),
    "why pods of other schedulers wait": ("spinney-backends: read events",),
    "every account has it; all replicas of the dashboard serve": (
        "spinney-dashboard: create leases.coordination.k8s.io in spinney-system",
        "spinney-dashboard: patch leases.coordination.k8s.io in spinney-system",
        "spinney-dashboard: read leases.coordination.k8s.io in spinney-system",
    ),
    "its certificate, which is renewed after months": ("spinney-grove: patch secrets in spinney-system",),
    "parts of a set that somebody changed": (
        "spinney-grove: patch rolebindings.rbac.authorization.k8s.io",
        "spinney-grove: patch roles.rbac.authorization.k8s.io",
        "spinney-grove: patch serviceaccounts",
        "spinney-grove: patch services",
    ),
    "parts of a set that it no longer has; those of a deleted set go by their owner": (
        "spinney-grove: delete rolebindings.rbac.authorization.k8s.io",
        "spinney-grove: delete roles.rbac.authorization.k8s.io",
        "spinney-grove: delete serviceaccounts",
    ),
    "granted to init containers": ("spinney-grove: read pods/status",),
    "agents on nodes, which these values do not ask for": (
        "spinney-platform: create daemonsets.apps",
        "spinney-platform: delete daemonsets.apps",
        "spinney-platform: patch daemonsets.apps",
    ),
    "budgets of services, which these values do not ask for": (
        "spinney-platform: create poddisruptionbudgets.policy",
        "spinney-platform: delete poddisruptionbudgets.policy",
        "spinney-platform: patch poddisruptionbudgets.policy",
    ),
    "schedulers that become one replica again": ("spinney-platform: delete endpointslices.discovery.k8s.io",),
}


@dataclass(frozen=True, order=True)
class Right:
    """What an account may do: read, or one verb that changes something. An empty namespace means everywhere."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.account}: {self.verb} {self.resource}{'.' if self.group else ''}{self.group}{where}"

    def covers(self, asked: Right) -> bool:
        """Whether this is the right that a request needed."""
        return (
            (self.account, self.verb, self.group) == (asked.account, asked.verb, asked.group)
            and self.resource in ("*", asked.resource)
            and self.namespace in ("", asked.namespace)
        )


def granted(cluster: RealCluster, namespaces: Iterable[str]) -> set[Right]:
    """The rights of every account of some namespaces."""
    roles = {_name(role): role for role in _items(cluster, "clusterroles,roles")}
    rights: set[Right] = set()
    for binding in _items(cluster, "clusterrolebindings,rolebindings"):
        where = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        role = roles.get((where if reference["kind"] == "Role" else "", reference["name"]))
        for subject in binding.get("subjects", ()):
            if role is not None and subject["kind"] == "ServiceAccount" and subject["namespace"] in namespaces:
                account = f"{subject['namespace']}:{subject['name']}"
                rights |= {right for rule in role.get("rules") or () for right in _rights(account, rule, where)}
    return rights


def asked(cluster: RealCluster, namespaces: Collection[str]) -> tuple[set[Right], set[Right]]:
    """What the accounts of some namespaces asked for, and what of it they were refused."""
    wanted: set[Right] = set()
    refused: set[Right] = set()
    for line in cluster.audit_log.read_text().splitlines():
        event = json.loads(line)
        user = event["user"].get("username", "")
        account, target = user.removeprefix(_ACCOUNTS), event.get("objectRef", {})
        ours = user.startswith(_ACCOUNTS) and account.partition(":")[0] in namespaces
        if not ours or "resource" not in target:
            continue
        right = _right(account, event["verb"], target)
        wanted.add(right)
        code = event.get("responseStatus", {}).get("code")
        if code == _FORBIDDEN:
            refused.add(right)
        if (event["verb"], code) == ("patch", _CREATED):
            # An apply of what is not there yet is authorized as a creation, too.
            wanted.add(replace(right, verb="create"))
    return wanted, refused


def unused(rights: Iterable[Right], requests: Iterable[Right]) -> list[Right]:
    """The rights that no request needed."""
    requests = list(requests)
    return sorted(right for right in rights if not any(right.covers(request) for request in requests))


def is_given_on(right: Right, rights: Iterable[Right]) -> bool:
    """Whether the platform has a right only to grant it: Kubernetes lets nobody grant what he may not do."""
    if not right.account.endswith(":spinney-platform"):
        return False
    wanted = (right.verb, right.group, right.resource)
    foreign = (each for each in rights if each.account != right.account)
    return any((each.verb, each.group, each.resource) == wanted for each in foreign)


def served_kinds(cluster: RealCluster) -> Callable[[Right], bool]:
    """Tells whether a right is about a kind that the cluster serves at all."""
    listed = cluster.kubectl("api-resources", "--no-headers", "--output=name").split()
    kinds = {(name.partition(".")[2], name.partition(".")[0]) for name in listed}
    groups = {group for group, _ in kinds}

    def served(right: Right) -> bool:
        kind = right.resource.partition("/")[0]
        return right.group in groups if kind == "*" else (right.group, kind) in kinds

    return served


def reason(right: Right) -> str:
    """Why an account has a right that it never used, or nothing."""
    return next((why for why, rights in _REASONS.items() if not _names(right).isdisjoint(rights)), "")


def without_right(rights: Iterable[Right]) -> list[str]:
    """What a reason is given for although nobody has that right."""
    names = {name for right in rights for name in _names(right)}
    return sorted(name for named in _REASONS.values() for name in named if name not in names)


def _names(right: Right) -> set[str]:
    """How a reason may name a right: with its account, or for all accounts."""
    text = str(right).partition(":")[2]
    return {text, f"*:{text.partition(':')[2]}"}


def _rights(account: str, rule: Json, namespace: str) -> Iterator[Right]:
    for group in rule.get("apiGroups", ()):
        for resource in rule.get("resources", ()):
            for verb in rule["verbs"]:
                yield Right(account, _verb(verb), group, resource, namespace)


def _right(account: str, verb: str, target: Json) -> Right:
    resource = target["resource"] + (f"/{target['subresource']}" if "subresource" in target else "")
    return Right(account, _verb(verb), target.get("apiGroup", ""), resource, target.get("namespace", ""))


def _verb(verb: str) -> str:
    return "read" if verb in _READING else verb


def _name(role: Json) -> tuple[str, str]:
    return role["metadata"].get("namespace", ""), role["metadata"]["name"]


def _items(cluster: RealCluster, kinds: str) -> list[Json]:
    return list(json.loads(cluster.kubectl("get", kinds, "--all-namespaces", "--output=json"))["items"])
