"""The kubelet and kube-proxy of a node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from spinney.testing.cluster import containerd
from spinney.testing.cluster.namespaces import Namespaces, NodeProgram
from spinney.testing.cluster.network import PODS

DNS_ADDRESS = "10.0.0.10"


@dataclass(frozen=True)
class Identity:
    """How a node is called, where it is, and whom it trusts."""

    name: str
    address: str
    group: str
    authority: Path


def start_kubelet(node: Namespaces, binary: Path, identity: Identity, kubeconfig: Path, labels: str) -> NodeProgram:
    """Start the kubelet, which registers the node."""
    configuration = _write(node, "kubelet.json", _kubelet(identity))
    command = [
        str(binary),
        f"--config={configuration}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={identity.name}",
        f"--node-ip={identity.address}",
        f"--node-labels={labels}",
        "--root-dir=/var/lib/kubelet",
        "--cert-dir=/var/lib/kubelet/pki",
        "--v=1",
    ]
    return NodeProgram(node, command, node.root / "kubelet.log")


def start_proxy(node: Namespaces, binary: Path, identity: Identity, kubeconfig: Path) -> NodeProgram:
    """Start kube-proxy, which makes the addresses of Services lead somewhere."""
    configuration = _write(node, "kube-proxy.json", _proxy(identity, kubeconfig))
    return NodeProgram(node, [str(binary), f"--config={configuration}"], node.root / "kube-proxy.log")


def _kubelet(identity: Identity) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": identity.address,
        "containerRuntimeEndpoint": f"unix://{containerd.SOCKET}",
        "authentication": {"x509": {"clientCAFile": str(identity.authority)}, "webhook": {"enabled": True}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": identity.group,
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_ADDRESS],
        "resolvConf": "",
        # Reports and starts faster than a large cluster would want.
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "registryPullQPS": 0,
        "maxPods": 200,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _proxy(identity: Identity, kubeconfig: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "bindAddress": identity.address,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "hostnameOverride": identity.name,
        "clusterCIDR": PODS,
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0},
        "iptables": {"minSyncPeriod": "100ms"},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
    }


def _write(node: Namespaces, name: str, content: dict[str, object]) -> Path:
    path = node.root / name
    path.write_text(json.dumps(content, indent=2))
    return path
