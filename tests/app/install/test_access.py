"""Roles for users: what who has them may look at."""

from __future__ import annotations

from spinney.answers.reading import read_cluster
from spinney.app.install.access import user_roles
from spinney.app.installation import install_crds
from spinney.kube.clock import SystemClock
from tests.worlds import Cluster


async def test_with_view_alone_no_plan_could_be_made(cluster: Cluster) -> None:
    """Kubernetes' role view shows neither nodes nor priority classes: `spinney queues` asked for it in vain."""
    await install_crds(cluster.client())
    roles = {role["metadata"]["name"]: role["rules"] for role in user_roles()}
    rules = [*roles["spinney-view"], *roles["spinney-cluster-view"]]
    viewer = await cluster.granted("ann", *rules)
    seen = await read_cluster(viewer, SystemClock())
    assert seen.schedule is not None
    without = await cluster.granted("bob", *roles["spinney-view"])
    assert (await read_cluster(without, SystemClock())).schedule is None
