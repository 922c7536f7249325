"""Names of everything that the operator creates, as upstream builds them; no name is ever parsed."""

from __future__ import annotations

from hashlib import sha256

ROLE_PREFIX = "grove.io:pcs:"
# A hostname has 63 characters; indices, separators and a pod's suffix need the rest.
NAME_BUDGET = 45
# Values of labels, and names inside a pod, have at most so many characters; names of objects may have more.
_LABEL_LENGTH = 63
_DIGEST_LENGTH = 8


def short(name: str) -> str:
    """A name as a label value or inside a pod: itself, or cut and with a digest of the whole."""
    if len(name) <= _LABEL_LENGTH:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: _LABEL_LENGTH - _DIGEST_LENGTH - 1].rstrip('-.')}-{digest}"


def replica(pcs: str, index: int) -> str:
    """The headless Service and the base gang of one set replica."""
    return f"{pcs}-{index}"


def clique(pcs: str, index: int, name: str) -> str:
    """A standalone clique."""
    return f"{pcs}-{index}-{name}"


def group(pcs: str, index: int, name: str) -> str:
    """A scaling group of one set replica."""
    return f"{pcs}-{index}-{name}"


def group_replica(group_name: str, replica_index: int) -> str:
    """One replica of a scaling group, as topology group configs name it."""
    return f"{group_name}-{replica_index}"


def member(group_name: str, replica_index: int, name: str) -> str:
    """A clique inside one replica of a scaling group."""
    return f"{group_name}-{replica_index}-{name}"


def scaled_gang(group_name: str, replica_index: int, min_available: int) -> str:
    """The gang of a scaling-group replica beyond minAvailable; counted from zero."""
    return f"{group_name}-{replica_index - min_available}"


def headless_address(pcs: str, index: int, namespace: str) -> str:
    """The DNS name of a set replica's headless Service."""
    return f"{replica(pcs, index)}.{namespace}.svc.cluster.local"


def hostname(clique_name: str, pod_index: int) -> str:
    """A pod's stable host name."""
    return f"{clique_name}-{pod_index}"


def role(pcs: str) -> str:
    """Role and RoleBinding of the start-up-order init container."""
    return f"{ROLE_PREFIX}{pcs}"


def service_account(pcs: str) -> str:
    """The account of the start-up-order init container."""
    return pcs


def token_secret(pcs: str) -> str:
    """The Secret with that account's token."""
    return f"{pcs}-ic-sat"


def claim_for_all(owner: str, template: str) -> str:
    """A ResourceClaim shared by all replicas of its owner."""
    return f"{owner}-all-{template}"


def claim_for_one(owner: str, replica_index: int, template: str) -> str:
    """A ResourceClaim of one replica of its owner."""
    return f"{owner}-{replica_index}-{template}"


def compute_domain(pcs: str, index: int, group_name: str) -> str:
    """A ComputeDomain and the claim template of its channel."""
    return f"{pcs}-{index}-{group_name}"
