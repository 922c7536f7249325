"""`spinney run binder`."""

from __future__ import annotations

from spinney.api.meta import Struct
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.binder.controller import Binder, PodBinding
from spinney.services.binder.device_claims import Claims
from spinney.services.binder.extended_resources import ExtendedClaims
from spinney.services.binder.node_queues import NodeQueues
from spinney.services.binder.shared_gpus import SharedGpus
from spinney.services.binder.sharing_config import SharingConfig
from spinney.services.binder.volumes import Volumes
from spinney.services.reservation.manifest import ReservationSettings

_READ = ("get", "list", "watch")


class BinderSettings(Struct, frozen=True):
    """How binds are carried out."""

    reservation: ReservationSettings = ReservationSettings()
    volume_timeout_seconds: float = 120.0
    # Devices are named as the container device interface (CDI) does.
    cdi: bool = False
    # Whether the binder binds volumes, and device claims.
    volumes: bool = True
    claims: bool = True
    # Containers get their GPU memory limit as a variable.
    memory_limit: bool = False
    # How many bindings are in flight at most; binds that wait for a step do not count.
    workers: int = 512
    # How long a binding without an answer blocks the next one on its node.
    bind_timeout_seconds: float = 30.0


async def run(runtime: Runtime, settings: BinderSettings | None = None) -> None:
    """Carry out BindRequests until cancelled."""
    settings = settings or BinderSettings()
    gpus = SharedGpus(runtime, settings.reservation)
    volumes = (Volumes(runtime, settings.volume_timeout_seconds),) if settings.volumes else ()
    claims = (Claims(runtime.client), ExtendedClaims(runtime.client)) if settings.claims else ()
    steps = (gpus, *volumes, *claims, SharingConfig(runtime.client, settings.cdi, settings.memory_limit))
    finish = PodBinding(runtime.client, NodeQueues(settings.workers), settings.bind_timeout_seconds)
    await run_controllers(runtime, Binder(runtime, steps, finish).controller, gpus.controller)


COMPONENT = Component(
    name="binder",
    summary="Carries out the scheduler's decisions: binds pods to nodes.",
    run=run,
    settings=BinderSettings,
    rules=(
        Rule(("",), ("pods", "nodes", "persistentvolumes", "persistentvolumeclaims"), _READ),
        # Labels of pods that share a GPU, and reservation pods.
        Rule(("",), ("pods",), ("create", "patch", "delete")),
        Rule(("",), ("persistentvolumes", "persistentvolumeclaims"), ("patch",)),
        Rule(("",), ("configmaps",), ("get", "create", "patch", "delete")),
        Rule(("storage.k8s.io",), ("storageclasses",), _READ),
        # Claims for extended resources are created per bind.
        Rule(("resource.k8s.io",), ("resourceclaims",), ("get", "create", "delete")),
        Rule(("resource.k8s.io",), ("resourceclaims/status",), ("patch",)),
        Rule(("",), ("pods/binding",), ("create",)),
        Rule(("",), ("pods/status",), ("patch",)),
        Rule(("",), ("events",), ("create", "patch")),
        Rule(("scheduling.run.ai",), ("bindrequests",), _READ),
        Rule(("scheduling.run.ai",), ("bindrequests/status",), ("patch",)),
    ),
)
