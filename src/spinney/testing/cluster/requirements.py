"""What a machine needs to hold a cluster, said in one line where it is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from spinney.testing.golang import Unavailable

# Debian's package of each program.
_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "socat": "socat",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "gcc": "gcc",
}
_NETWORK_PLUGINS = Path("/usr/lib/cni/bridge")


def check() -> None:
    """Raise where this machine cannot hold a cluster; the message says what to do."""
    if sys.platform != "linux":
        raise Unavailable("a real cluster on one machine needs Linux")
    if os.geteuid() != 0:
        raise Unavailable("a real cluster on one machine needs root, for namespaces, mounts and control groups")
    missing = {package for program, package in _PACKAGES.items() if shutil.which(program) is None}
    if not _NETWORK_PLUGINS.exists():
        missing.add("containernetworking-plugins")
    if missing:
        raise Unavailable(f"a real cluster needs these Debian packages: apt-get install {' '.join(sorted(missing))}")
