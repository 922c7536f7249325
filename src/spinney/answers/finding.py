"""Find what a user means by `[kind/]name`: a workload, one of its gangs or pods, a queue or a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spinney.answers.cluster import Cluster
from spinney.answers.ownership import chain
from spinney.answers.workloads import Parts, parts_of
from spinney.api import labels
from spinney.api.core import Pod

# What kubectl, and people, call kinds.
_SHORT = {
    "po": "pod",
    "pg": "gang",
    "podgang": "gang",
    "podgroup": "gang",
    "pcs": "podcliqueset",
    "set": "podcliqueset",
    "deploy": "deployment",
    "sts": "statefulset",
    "rs": "replicaset",
    "cj": "cronjob",
    "lws": "leaderworkerset",
    "q": "queue",
    "no": "node",
    "evictions": "eviction",
}


@dataclass(frozen=True)
class Match:
    """A workload, or the part of it that has the name."""

    kind: str
    name: str
    parts: Parts


def kind_of(word: str) -> str:
    """The kind that a word stands for, in lower case and singular; a group after a point does not matter."""
    word = word.lower().partition(".")[0]
    if word in _SHORT:
        return _SHORT[word]
    singular = word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return _SHORT.get(singular, singular)


def split(text: str) -> tuple[str, str]:
    """Kind and name of `[kind/]name`; an evicted pod may be named with its namespace, as in the list of evictions."""
    kind, _, name = text.rpartition("/")
    if kind.startswith("eviction/"):
        kind, _, namespace = kind.partition("/")
        name = f"{namespace}/{name}"
    return (kind_of(kind) if kind else ""), name


def find(cluster: Cluster, kind: str, name: str, namespace: str) -> list[Match]:
    """Every workload, gang or pod of that name; of any kind if none is given, workloads first."""
    whole: list[Match] = []
    partly: list[Match] = []
    for ref, parts in parts_of(cluster).items():
        if ref.namespace != namespace:
            continue
        if ref.name == name and kind in ("", ref.kind.lower()):
            whole.append(Match(ref.kind.lower(), name, parts))
        elif part := next(_inside(cluster, parts, kind, name), None):
            partly.append(part)
    return whole or _merged(partly)


def _merged(matches: list[Match]) -> list[Match]:
    """Join the matches of one gang: its bare pods are separate workloads."""
    gangs = [match for match in matches if match.kind == "gang"]
    if len(gangs) < 2:
        return matches
    groups = {group.name: group for gang in gangs for group in gang.parts.groups}
    pods = [pod for gang in gangs for pod in gang.parts.pods]
    whole = Match("gang", gangs[0].name, Parts(gangs[0].parts.owner, pods, list(groups.values())))
    return [whole, *(match for match in matches if match.kind != "gang")]


def _inside(cluster: Cluster, parts: Parts, kind: str, name: str) -> Iterator[Match]:
    """The gang, pod, or owner between workload and pods that has the name."""
    if kind in ("", "gang"):
        pods = [pod for pod in parts.pods if name in _gangs_of(pod.metadata.labels, pod.metadata.annotations)]
        groups = [group for group in parts.groups if group.name == name]
        if pods or groups:
            yield Match("gang", name, _part(parts, pods))
    if kind in ("", "pod"):
        yield from (Match("pod", name, _part(parts, [pod])) for pod in parts.pods if pod.name == name)
    if kind in ("gang", "pod"):
        return
    pods = [
        pod
        for pod in parts.pods
        if any(owner.ref.name == name and kind in ("", owner.ref.kind.lower()) for owner in chain(cluster, pod))
    ]
    if pods:
        yield Match(kind or "owner", name, _part(parts, pods))


def _gangs_of(pod_labels: dict[str, str], annotations: dict[str, str]) -> Iterable[str]:
    return pod_labels.get(labels.PODGANG, ""), annotations.get(labels.POD_GROUP, "")


def _part(parts: Parts, pods: list[Pod]) -> Parts:
    names = {pod.metadata.annotations.get(labels.POD_GROUP, "") for pod in pods}
    return Parts(parts.owner, pods, [group for group in parts.groups if group.name in names])
