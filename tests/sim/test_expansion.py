"""Workloads expanded by the real controllers in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.answers.whatif.changes import ChangeError
from spinney.api.core import Pod
from spinney.app.offline_checks import read_documents
from spinney.sim.expansion import expand
from tests.answers.scene import Scene

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: serve}
spec:
  replicas: 2
  template:
    cliques:
    - name: workers
      spec:
        replicas: 3
        minAvailable: 2
        podSpec:
          schedulerName: kai-scheduler
          containers: [{name: c, image: x, resources: {requests: {nvidia.com/gpu: 1}}}]
"""
STATEFUL = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {kai.scheduler/queue: team}}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db, kai.scheduler/queue: team}}
    spec:
      schedulerName: kai-scheduler
      containers: [{name: c, image: x}]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: half, labels: {kai.scheduler/queue: team}}
spec:
  parallelism: 1
  template:
    metadata: {annotations: {gpu-fraction: "1.5"}, labels: {kai.scheduler/queue: team}}
    spec:
      schedulerName: kai-scheduler
      restartPolicy: Never
      containers: [{name: c, image: x}]
"""


TORCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, labels: {kai.scheduler/queue: team}}
spec:
  pytorchReplicaSpecs:
    Master: &part
      replicas: 1
      template:
        spec:
          schedulerName: kai-scheduler
          containers: [{name: pytorch, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]
    Worker: {<<: *part, replicas: 3}
"""


def documents(tmp_path: Path, text: str) -> list[dict[str, object]]:
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    return read_documents(str(path))


def gang_of(pod: Pod) -> str:
    return pod.metadata.annotations["pod-group-name"]


def test_a_set_becomes_gangs_with_released_pods(tmp_path: Path) -> None:
    """Each replica is a PodGroup of its own, and its pods wait for nothing but a place."""
    created = expand(Scene().cluster(), documents(tmp_path, SET))
    assert [(group.spec.min_member, group.spec.queue) for group in created.groups] == [(2, "default-queue")] * 2
    assert {gang_of(pod) for pod in created.pods} == {group.name for group in created.groups}
    assert len(created.pods) == 6
    assert not any(pod.spec.scheduling_gates for pod in created.pods)


def test_kinds_of_other_projects_are_expanded_by_their_stand_ins(tmp_path: Path) -> None:
    """A PyTorchJob is one gang of its master and its workers."""
    created = expand(Scene().cluster(), documents(tmp_path, TORCH))
    assert [group.spec.queue for group in created.groups] == ["team"]
    assert len(created.pods) == 4
    assert {owner.name for owner in created.owners} == {"train"}


def test_pods_of_a_stateful_set_come_all_at_once(tmp_path: Path) -> None:
    """In a cluster one waits for the other to be ready; here nothing ever is."""
    created = expand(Scene().cluster(), documents(tmp_path, STATEFUL))
    assert sorted(pod.name for pod in created.pods) == ["db-0", "db-1", "db-2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # The controller's own warning is the error.
        (JOB, r"job/half: .*gpu-fraction"),
        (JOB.replace("parallelism", "parallel"), r"job/half: .*unknown field"),
        (JOB.replace("name: half", "name: a"), "job/a exists already in namespace default"),
    ],
)
def test_what_a_cluster_would_refuse_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """By admission, by the schema, or because the name is taken."""
    with pytest.raises(ChangeError, match=message):
        expand(Scene().job("a").cluster(), documents(tmp_path, text))
