"""A gang whose pods depend on each other: what tests of an installation watch through its life."""

from __future__ import annotations

from typing import Any

from spinney.api import labels
from spinney.api.image import default_image
from spinney.api.meta import Json
from spinney.testing.images import pause
from tests.make import pcs

PLACE = "life"
# Ready while nobody has left a file beside it; a file that outlives the container makes it fail for good.
ROUTER = """
import http.server, os, threading
if os.path.exists("/state/broken"):
    raise SystemExit(1)
def watch():
    while not os.path.exists("/state/broken"):
        threading.Event().wait(0.2)
    os._exit(1)
threading.Thread(target=watch).start()
http.server.HTTPServer(("", 8080), http.server.BaseHTTPRequestHandler).serve_forever()
"""
# A worker looks up its router and both workers by the names of the headless Service.
WORKER = """
import socket, threading
for name in ("team-0-router-0", "team-0-workers-0", "team-0-workers-1"):
    while True:
        try:
            print(name, socket.gethostbyname(f"{name}.team-0"), flush=True)
            break
        except OSError:
            threading.Event().wait(0.2)
threading.Event().wait()
"""


def container(program: str, **more: Any) -> Json:
    """A container that runs a Python program of our image."""
    return {"name": "main", "image": default_image(), "command": ["python3", "-c", program], **more}


def team() -> Json:
    """A router, and two workers with a GPU each that start after it."""
    state = {"volumes": [{"name": "state", "emptyDir": {}}], "terminationGracePeriodSeconds": 1}
    # Only a container that ends is to make the gang unhealthy, not a machine that is slow to answer probes.
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 30}
    router = container(ROUTER, readinessProbe=probe, volumeMounts=[{"name": "state", "mountPath": "/state"}])
    worker = container(WORKER, resources={"limits": {labels.GPU_RESOURCE: "1"}})
    ours: Json = {"schedulerName": "kai-scheduler", "terminationGracePeriodSeconds": 1}
    made = (
        pcs("team", PLACE)
        .clique("router", **{**ours, **state}, containers=[router])
        .clique("workers", 2, **ours, containers=[worker])
        .build()
    )
    template = made["spec"]["template"]
    template["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    template["terminationDelay"] = "5s"
    template["cliques"][1]["spec"]["startsAfter"] = ["router"]
    return made


def waiting(gpus: int = 0) -> Json:
    """A container that waits, with GPUs or without."""
    made = {"name": "main", "image": pause.NAME}
    return {**made, "resources": {"limits": {labels.GPU_RESOURCE: str(gpus)}}} if gpus else made


def version() -> Json:
    """A container that ends at once."""
    return {"name": "main", "image": default_image(), "args": ["--version"]}


def scaled() -> Json:
    """A set with an autoscaler for its scaling group."""
    made = (
        pcs("scaled", PLACE)
        .clique("a", schedulerName="kai-scheduler", containers=[waiting()])
        .clique("b", schedulerName="kai-scheduler", containers=[waiting()])
        .group("g", ["b"])
        .build()
    )
    made["spec"]["template"]["podCliqueScalingGroups"][0]["scaleConfig"] = {"minReplicas": 1, "maxReplicas": 2}
    return made
