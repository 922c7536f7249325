"""Processes that serve different backends, side by side."""

from __future__ import annotations

from spinney.api.coordination import Lease
from spinney.app.component_settings import choose_parts, configured_components
from spinney.app.installation import install_crds
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from tests.waiting import running
from tests.worlds import Cluster


async def test_processes_with_different_backends_do_not_wait_for_each_other(cluster: Cluster) -> None:
    """`--only kai` and `--only volcano` shared one Lease: the second stood by for ever and said that it was ready."""
    namespace = await cluster.namespace()
    await install_crds(cluster.client())
    hosts = [
        Host(
            cluster.client(),
            SystemClock(),
            configured_components(["backends"], overrides=choose_parts(name)),
            namespace=namespace,
            identity=name,
        )
        for name in ("kai", "volcano")
    ]
    async with running(hosts[0]), running(hosts[1]):
        leases = await cluster.client().list(Lease, namespace)
    assert {lease.name: lease.spec.holder_identity for lease in leases.items} == {
        "spinney-backends-kai": "kai",
        "spinney-backends-volcano": "volcano",
    }


def test_two_replicas_of_one_choice_share_a_lease() -> None:
    """The order of the names does not matter."""
    names = set()
    for chosen in ("kai,volcano", "volcano,kai"):
        ((component, config),) = configured_components(["backends"], overrides=choose_parts(chosen))
        assert component.lease is not None
        names.add(component.lease(config))
    assert names == {"spinney-backends-kai-volcano"}
