"""kubectl in a test: what it is given, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.worlds import Cluster, Ran

Run = Callable[..., Awaitable[str]]


# Far above what anything takes on a busy machine: only what never happens is to fail.
PATIENCE = "--timeout=180s"


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:1.27", ports: [{containerPort: 80}]}
"""


MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {color: red, size: big}
"""


POD = """
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: one}}
spec:
  nodeSelector: {nowhere: "true"}
  containers: [{name: main, image: "busybox:1.36", command: [sleep, "100"]}]
"""


async def failing(cluster: Cluster, namespace: str, *arguments: str, stdin: str = "") -> Ran:
    """A kubectl that has to fail."""
    ran = await cluster.kubectl("-n", namespace, *arguments, stdin=stdin)
    assert ran.code != 0, ran.out
    return ran


async def seen(ctl: Run, *arguments: str, stdin: str = "") -> Any:
    """The object that kubectl prints as JSON."""
    return json.loads(await ctl(*arguments, "-o", "json", stdin=stdin))
