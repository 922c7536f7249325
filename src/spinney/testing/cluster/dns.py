"""CoreDNS in the first node, behind the Service that every pod asks for names."""

from __future__ import annotations

from pathlib import Path

from spinney.api.meta import Json
from spinney.testing.cluster.kubelet import DNS_ADDRESS
from spinney.testing.cluster.namespaces import Namespaces, NodeProgram

USER = "system:coredns"
_NAME = "kube-dns"
_COREFILE = """.:53 {{
    bind {address}
    errors
    kubernetes cluster.local {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 1
    }}
}}
"""


def start(node: Namespaces, binary: Path, address: str, kubeconfig: Path) -> NodeProgram:
    """Start CoreDNS on the node's address."""
    corefile = node.root / "Corefile"
    corefile.write_text(_COREFILE.format(address=address, kubeconfig=kubeconfig))
    return NodeProgram(node, [str(binary), "-conf", str(corefile)], node.root / "coredns.log")


def objects(address: str) -> list[Json]:
    """The Service of the DNS server, its endpoint, and the right to read what it answers with."""
    ports = [{"name": "dns", "protocol": "UDP", "port": 53}, {"name": "dns-tcp", "protocol": "TCP", "port": 53}]
    place = {"name": _NAME, "namespace": "kube-system"}
    role = {"name": USER}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": place,
            "spec": {"clusterIP": DNS_ADDRESS, "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**place, "labels": {"kubernetes.io/service-name": _NAME}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": ports,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": role,
            "rules": [
                {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        },
    ]
