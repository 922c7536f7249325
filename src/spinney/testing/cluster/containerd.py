"""containerd on a node: its configuration, the pods' network, and the import of images."""

from __future__ import annotations

import json
from pathlib import Path

from spinney.testing.cluster.namespaces import Namespaces, NodeProgram
from spinney.testing.images import pause

SOCKET = "/run/containerd/containerd.sock"
_NETWORK = "/var/lib/cni-config"
# The out-of-memory score is left alone: lowering it needs rights that a machine in a machine may not have.
_CONFIGURATION = f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause.NAME}"
restrict_oom_score_adj = true
disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{_NETWORK}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def start(node: Namespaces, pods: str) -> NodeProgram:
    """Start containerd with a bridge for pods of the given range."""
    configuration = node.root / "containerd.toml"
    configuration.write_text(_CONFIGURATION)
    network = node.root / "var/lib/cni-config"
    network.mkdir(parents=True, exist_ok=True)
    (network / "10-pods.conflist").write_text(json.dumps(_pod_network(pods)))
    command = ["/usr/bin/containerd", "--config", str(configuration)]
    return NodeProgram(node, command, node.root / "containerd.log")


def answers(node: Namespaces) -> bool:
    """Whether containerd serves the node's socket."""
    return (Path(f"/proc/{node.pid}/root") / SOCKET.lstrip("/")).exists()


def import_image(node: Namespaces, archive: Path) -> None:
    """Give a node the images of an archive."""
    node.run("ctr", "--namespace=k8s.io", "images", "import", "--digests=false", str(archive.resolve()))


def name_image(node: Namespaces, image: str, name: str) -> None:
    """Give an image of a node another name."""
    node.run("ctr", "--namespace=k8s.io", "images", "tag", "--force", image, name)


def _pod_network(pods: str) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, portmap]}
