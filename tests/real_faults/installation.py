"""What can be broken: an installation of Spinney on a real API server, as processes or in containers."""

from __future__ import annotations

from typing import Protocol

from spinney.kube.client.client import Client
from spinney.testing.controlplane import ControlPlane

COMPONENTS = (
    *("grove", "backends", "podgrouper", "podgroup-controller", "queue-controller", "scheduler", "binder"),
    "admission",
)
KUBELETS = "kubelets"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager")


class Installation(Protocol):
    """Components, kubelets and a control plane; any of them can be ended at once and started again."""

    @property
    def plane(self) -> ControlPlane:
        """The control plane."""

    @property
    def image(self) -> str:
        """The image of the pods of users."""

    async def start(self, client: Client) -> None:
        """Install everything."""

    async def supervise(self) -> None:
        """Start components again that ended by themselves, until cancelled."""

    async def crash(self, name: str) -> None:
        """End a process at once."""

    async def revive(self, name: str) -> None:
        """Start it again, unless something else does."""

    def restarts(self) -> int:
        """How often components ended on their own account, such as a leader that lost its Lease."""


async def revive_control_plane(installation: Installation) -> None:
    """Start everything of the control plane again that has ended, the store first."""
    for name in CONTROL_PLANE:
        if not installation.plane.is_running(name):
            await installation.revive(name)
