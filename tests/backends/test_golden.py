"""What every backend writes for every gang of the matrix, in every version, word by word.

The tests of the single backends look only at what these files do not show: owners, sets, and what depends on a cluster.
The files under `golden/` are the expectation. After a deliberate change write them anew with
`SPINNEY_WRITE_GOLDEN=1 pytest tests/backends/test_golden.py`, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Backend, Cluster
from spinney.backends.kube_scheduler.releases import GANG_APIS, served_by
from spinney.backends.registry import Registry
from spinney.backends.served import Served
from spinney.kube.difference import without_none
from tests import make
from tests.backends import matrix

GOLDEN = Path(__file__).parent / "golden"
BACKENDS = list(Registry.load())
VERSIONS: dict[str, tuple[Backend, Served]] = {
    (f"{backend.name}-{release}" if backend.name == "default" else backend.name): (
        backend,
        served_by(release, BACKENDS),
    )
    for backend in BACKENDS
    for release in GANG_APIS
    if release != "1.34"
}


def written(backend: Backend, served: Served, builder: make.GangBuilder) -> Json:
    """A gang in a backend's words: its objects, what is lost, and what one pod of each role gets."""
    gang = convert(PodGang, builder.backend(backend.name).build())
    translation = backend.translate(gang, Cluster(served))
    objects = []
    for wanted in translation.objects:
        body = without_none(wanted.body)
        # The same on every object of ours; tests of the single backends look at them.
        for same in ("ownerReferences", "labels", "namespace"):
            body["metadata"].pop(same, None)
        objects.append({"apiVersion": wanted.resource.api_version, "kind": wanted.resource.kind, **body})
    pods = {}
    for group in gang.spec.podgroups[:2]:
        pod = make.pod("p", "ml").label("grove.io/podclique", group.name).label("grove.io/podclique-pod-index", "0")
        prepared = backend.prepare(pod.build(), gang, served)
        pods[group.name] = {**prepared["metadata"], **prepared["spec"]}
        for member in ("name", "namespace", "containers"):
            pods[group.name].pop(member, None)
    return {"objects": objects, "lost": [f"{loss.field}: {loss.asked}" for loss in translation.losses], "pods": pods}


@pytest.mark.parametrize("version", VERSIONS)
def test_golden(version: str) -> None:
    """Nothing changes unnoticed."""
    backend, served = VERSIONS[version]
    objects = {title: written(backend, served, builder) for title, builder in matrix.gangs().items()}
    path = GOLDEN / f"{version}.yaml"
    if os.environ.get("SPINNEY_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.dump(objects, Dumper=_Plain, sort_keys=False, width=120))
    assert objects == yaml.safe_load(path.read_text())


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True
