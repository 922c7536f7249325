"""Rights that accounts have on a cluster, held against what the API server's audit log says they asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from spinney.api.meta import Json
from spinney.testing.cluster.cluster import RealCluster

# Reading is one right: who may list or watch sees all that a `get` shows.
_READING = ("get", "list", "watch")
_FORBIDDEN = 403
_ACCOUNTS = "system:serviceaccount:"
# Why components have rights that the tests before never need, by patterns of what is left unused.
_REASONS = {
    "*: update */finalizers.*": "for API servers that check owner references (OwnerReferencesPermissionEnforcement)",
    "*: create events": "told only when something is wrong",
    "*: patch events": "told only when the same happens again",
    "*: create *webhookconfigurations.*": "where a component registers its webhooks itself",
    "*:spinney-platform: create *": "an apply of what is not there yet is authorized as a creation, too",
    "*:spinney-platform: delete *": "services that a Config switches off",
    "*:spinney-platform: patch *": "budgets and node agents, which these values do not ask for",
    "*:spinney-dashboard: * leases.*": "every account has it; all replicas of the dashboard serve",
    "*: * resourceclaim*": "devices by DRA, of which these nodes have none",
    "*:admission: * pods": "only where Config asks for the queue of running pods",
    "*:binder: * configmaps": "shared GPUs of containers that ask for an environment",
    "*:binder: patch persistentvolume*": "volumes that are bound with the pod",
    "*:binder: patch pods/status": "told only when a pod could not be bound",
    "*:node-scale-adjuster: * pods*": "only where an autoscaler would need to see shared GPUs",
    "*:pod-grouper: patch podgroups.*": "groups whose owner changes",
    "*:pod-grouper: read *": "settings and owners of other workloads",
    "*:scheduler: delete bindrequests.*": "requests whose pod is gone",
    "*:scheduler: read csi*": "for snapshots only",
    "*:spinney-backends: * pods*": "gangs of kube-scheduler and YuniKorn that have to begin again",
    "*:spinney-backends: patch *": "gangs and topologies that change",
    "*:spinney-backends: delete topologies.*": "left to the garbage collector where the binding goes",
    "*:spinney-backends: read *": "settings of other schedulers, and why pods wait",
    "*:spinney-grove: patch *": "certificates and parts of a set that change",
    "*:spinney-grove: delete *": "parts of a set that it no longer has",
    "*:spinney-grove: read pods/status": "granted to init containers",
    "kai-resource-reservation:*": "asked for by reservation pods",
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
    found: set[Right] = set()
    for binding in _items(cluster, "clusterrolebindings,rolebindings"):
        where = binding["metadata"].get("namespace", "")
        reference = binding["roleRef"]
        role = roles.get((where if reference["kind"] == "Role" else "", reference["name"]))
        for subject in binding.get("subjects", ()):
            if role is not None and subject["kind"] == "ServiceAccount" and subject["namespace"] in namespaces:
                account = f"{subject['namespace']}:{subject['name']}"
                found |= {right for rule in role.get("rules") or () for right in _rights(account, rule, where)}
    return found


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
        if event.get("responseStatus", {}).get("code") == _FORBIDDEN:
            refused.add(right)
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
    others = (each for each in rights if each.account != right.account)
    return any((each.verb, each.group, each.resource) == wanted for each in others)


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
    return next((why for pattern, why in _REASONS.items() if fnmatchcase(str(right), pattern)), "")


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
