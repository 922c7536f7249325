"""The API server's audit log: who asked for what, without bodies, and without the cluster's own programs."""

from __future__ import annotations

import json
from pathlib import Path

LOG = "audit.jsonl"
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:nodes"]},
        {"level": "None", "users": ["system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy"]},
        {"level": "None", "users": ["system:apiserver", "system:coredns"]},
        {"level": "Metadata"},
    ],
}


def flags(folder: Path) -> tuple[str, ...]:
    """The flags of the API server that write the log below a folder."""
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(_POLICY))
    return (f"--audit-policy-file={policy}", f"--audit-log-path={folder / LOG}")
