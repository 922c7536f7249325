"""Which components a test of the scheduler's service runs."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.controllers.leader import LEASE
from spinney.scheduler.service.component import COMPONENT as SCHEDULER
from spinney.services.binder.component import COMPONENT as BINDER

PARTS = ((SCHEDULER, SchedulerFile(stand_in=True)), (BINDER, None))


KUBE_SCHEDULER_LEASE: Json = {
    "metadata": {"name": "kube-scheduler"},
    "spec": {
        "holderIdentity": "kube-scheduler-1",
        "leaseDurationSeconds": 3600,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    },
}


WITH_KUBE_SCHEDULER = [(LEASE, KUBE_SCHEDULER_LEASE, "kube-system")]
