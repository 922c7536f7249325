"""Fake GPUs on real kubelets."""

from __future__ import annotations

from spinney.testing.cluster import fake_gpus
from spinney.testing.cluster.cluster import RealCluster
from tests.cluster.pods import pod_until, python_pod
from tests.cluster.waiting import until
from tests.make import Builder

TELL = "import os; print(os.environ['NVIDIA_VISIBLE_DEVICES'])"


async def test_pods_get_gpus_of_their_own(real_cluster: RealCluster) -> None:
    """Each node offers eight GPUs; a pod that asks for two is told which ones it got."""
    assert fake_gpus.allocatable(real_cluster) == {"node-1": 8, "node-2": 8}
    two = {"limits": {"nvidia.com/gpu": "2"}}
    real_cluster.apply(Builder("v1", "Namespace", "gpus").build(), python_pod("uses", "gpus", TELL, resources=two))
    await pod_until(real_cluster, "gpus", "uses", "Succeeded")
    gpus = real_cluster.kubectl("logs", "uses", "-n", "gpus").strip().split(",")
    assert len(set(gpus)) == 2
    assert all(each.startswith("GPU-") for each in gpus)


async def test_gpus_come_back_after_a_killed_kubelet(real_cluster: RealCluster) -> None:
    """A kubelet that starts again hears of its GPUs again: pods get them."""
    node = real_cluster.nodes[1]
    node.kill_kubelet()
    node.start_kubelet()
    template = python_pod("again", "gpus", TELL, resources={"limits": {"nvidia.com/gpu": "8"}})
    template["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node.name}
    # The kubelet refuses a pod that comes before the plugin has: a Job tries again.
    job = Builder("batch/v1", "Job", "again", "gpus").spec(backoffLimit=100, template={"spec": template["spec"]})
    real_cluster.apply(job.build())
    real_cluster.kubectl("wait", "job/again", "-n", "gpus", "--for=condition=Complete", "--timeout=600s")
    await until(lambda: fake_gpus.allocatable(real_cluster)[node.name] == 8, every=0.5)
