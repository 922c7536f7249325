"""The NUMA exporter: deployed on nodes with zones where a shard aligns, or where Config says so."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api.apps import DaemonSet
from spinney.api.kai import Config, SchedulingShard
from spinney.api.kaiconfig import ConfigSpec
from spinney.api.meta import Json, convert
from spinney.services.platform.node_agents import plan_daemon_set, plan_exporter
from tests.services.platform.installation import NAMESPACE, platform, said
from tests.services.stage import Stage
from tests.virtual_time import virtual

ALIGNS: Json = {"plugins": {"numa": {"enabled": True}}}


@pytest.mark.parametrize(
    ("enabled", "plugins", "deployed"),
    [
        (None, {}, False),
        (None, {"numa": {}}, True),
        (None, {"numa": {"enabled": False}}, False),
        (False, {"numa": {"enabled": True}}, False),
        (True, {}, True),
    ],
)
def test_when_it_is_deployed(enabled: bool | None, plugins: Json, deployed: bool) -> None:
    """By Config's word; without one, where a shard has the plugin."""
    said = {} if enabled is None else {"enabled": enabled}
    config = convert(ConfigSpec, {"numaPlacementExporter": {"service": said}})
    shard = convert(SchedulingShard, {"metadata": {"name": "s"}, "spec": {"plugins": plugins}})
    assert bool(plan_exporter(config, [shard])) == deployed


def test_its_pods_see_the_kubelets_files() -> None:
    """Read-only, as root, on nodes with zones, with the paths and tolerations that Config names."""
    spec = {
        "global": {"daemonsetsTolerations": [{"operator": "Exists"}]},
        "numaPlacementExporter": {
            "service": {"enabled": True},
            "pollInterval": "5s",
            "podResourcesHostPath": "/data/kubelet/pod-resources",
        },
    }
    config = convert(ConfigSpec, spec)
    (process,) = plan_exporter(config, [])
    settings, daemon_set = plan_daemon_set(process, config, "image")
    assert "pollSeconds: 5.0" in settings["data"]["config.yaml"]
    pod = daemon_set["spec"]["template"]["spec"]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    assert paths == {"kubelet": "/data/kubelet", "sysfs": "/sys"}
    assert pod["nodeSelector"] == {"feature.node.kubernetes.io/memory-numa": "true"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    container = pod["containers"][0]
    assert container["args"][:2] == ["run", "numa-placement-exporter"]
    assert "--no-leader-election" in container["args"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


async def deployed(held: Stage) -> list[str]:
    """The DaemonSets there are."""
    await asyncio.sleep(2)
    return [daemon_set.name for daemon_set in (await held.client.list(DaemonSet, NAMESPACE)).items]


@virtual
async def test_it_comes_and_goes_with_the_shards() -> None:
    """The operator looks again when a shard begins or ceases to align."""
    async with platform() as held:
        assert await deployed(held) == []
        await held.client.patch(SchedulingShard, "default", {"spec": ALIGNS})
        assert await deployed(held) == ["numa-placement-exporter"]
        status = {"observedGeneration": 1, "desiredNumberScheduled": 3, "numberReady": 1}
        patch = {"status": {**status, "currentNumberScheduled": 3, "numberMisscheduled": 0}}
        await held.client.patch(DaemonSet, (NAMESPACE, "numa-placement-exporter"), patch, subresource="status")
        await asyncio.sleep(2)
        assert "is ready on 1 of 3 nodes" in (await said(held, Config, "kai-config", "Available"))[1]
        await held.client.patch(SchedulingShard, "default", {"spec": {"plugins": None}})
        assert await deployed(held) == []
