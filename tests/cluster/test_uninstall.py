"""The end of the installation on a real cluster, in order: gone by Helm, then without a trace."""

from __future__ import annotations

from spinney.api.image import default_image
from tests.cluster.guide import Guide
from tests.cluster.installing import Installation, lives
from tests.cluster.team import PLACE
from tests.cluster.waiting import until


async def test_helm_uninstall_leaves_workloads_running(installation: Installation, guide: Guide) -> None:
    """Nothing of ours can act on others afterwards, and the gang's pods run on."""
    before = await installation.set_ready(PLACE, "team", 3)
    guide.follow("helm uninstall")
    await until(lambda: not _cluster_wide(installation), every=0.5)
    assert lives(installation.ready_pods(PLACE, "team")) == lives(before)


async def test_nothing_of_ours_is_left(installation: Installation, guide: Guide) -> None:
    """What Helm keeps goes with `spinney uninstall`; pods run on without owners, and others can be created."""
    before = await installation.set_ready(PLACE, "team", 3)
    guide.type(f"echo y | {guide.command('spinney uninstall')}")
    assert lives(installation.ready_pods(PLACE, "team")) == lives(before)
    assert [name for name in installation.cluster.kubectl("get", "crds", "-o", "name").split() if _is_ours(name)] == []
    installation.cluster.kubectl("run", "plain", "-n", PLACE, f"--image={default_image()}", "--", "--version")


def _cluster_wide(installation: Installation) -> list[str]:
    """Webhooks and rights of ours: what could still act on others after we are gone."""
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings"
    names = installation.cluster.kubectl("get", kinds, "-o", "name").split()
    return [name for name in names if "/system:" not in name and _is_ours(name)]


def _is_ours(name: str) -> bool:
    words = ("spinney", "kai", "grove", "podgroup", "binder", "run.ai")
    return any(word in name for word in words)
