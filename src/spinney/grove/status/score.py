"""placementScore: how few topology domains a gang uses, compared with the fewest that could hold it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from spinney.api.core import Node, Pod
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests
from spinney.grove.model.topology import Levels

# Thousandths by resource name.
Amounts = dict[str, int]


def placement_score(pods: Sequence[Pod], nodes: Mapping[str, Node], levels: Levels) -> float:
    """Mean over the levels of (fewest domains that could hold the gang ÷ domains it uses); 1.0 without levels."""
    on = [nodes[pod.spec.node_name] for pod in pods if pod.spec.node_name in nodes]
    if not levels.keys or not on:
        return 1.0
    requests: Counter[str] = Counter()
    for pod in pods:
        requests.update(pod_requests(pod.spec))
    shares = [_share(key, on, nodes.values(), requests) for _, key in levels.keys]
    return round(sum(shares) / len(shares), 4)


def _share(key: str, on: Sequence[Node], nodes: Iterable[Node], requests: Amounts) -> float:
    used = {node.metadata.labels.get(key, "") for node in on}
    domains: dict[str, Amounts] = defaultdict(lambda: defaultdict(int))
    for node in nodes:
        domain = node.metadata.labels.get(key)
        if domain is None:
            continue
        for resource, amount in node.status.allocatable.items():
            domains[domain][resource] += milli(amount)
    return min(1.0, fewest_domains(list(domains.values()), requests) / len(used))


def fewest_domains(domains: Sequence[Amounts], requests: Amounts) -> int:
    """How many domains could hold the requests if each resource had the largest ones to itself; at least one."""
    fewest = 1
    for resource, wanted in requests.items():
        left, count = wanted, 0
        for capacity in sorted((domain.get(resource, 0) for domain in domains), reverse=True):
            if left <= 0 or capacity <= 0:
                break
            left -= capacity
            count += 1
        fewest = max(fewest, count)
    return fewest
