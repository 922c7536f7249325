"""The worked examples of every target: what they show for one gang is in what we write for it."""

from __future__ import annotations

import json

import pytest
import yaml

from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster
from spinney.backends.kube_scheduler.releases import served_by
from spinney.backends.registry import Registry
from spinney.kube.difference import merge_patch, without_none
from tests import data

REGISTRY = Registry.load()
# What is said in another way: 1.35 links the surplus to the gang and holds it by its gate, instead of in a second
# group; Volcano's queue is left to the default of its CRD, which a namespace may replace; Koordinator's surplus is no
# member, so that every replacement needs its quorum.
OTHERWISE: dict[str, Json] = {
    "01-k8s-1.35-workload": {
        "podGroups": [{"name": "gang", "policy": {"gang": {"minCount": 4}}}, {"name": "extra", "policy": {"basic": {}}}]
    },
    "04-volcano": {"queue": "default"},
}

OTHERWISE_ANNOTATED = (
    "gang.scheduling.koordinator.sh/match-policy",
    "gang.scheduling.koordinator.sh/total-number",
)


def documents(name: str) -> list[Json]:
    """The objects of one example."""
    documents = yaml.safe_load_all(data.path(f"samples/gang-apis/{name}.yaml").read_text())
    return [document for document in documents if document]


def written(backend: str, release: str) -> dict[tuple[str, str], Json]:
    """What we write for the gang of the examples, by kind and name."""
    (gang,) = documents("00-podgang")
    gang["metadata"] |= {"uid": "uid-1", "generation": 1}
    chosen = REGISTRY.get(backend)
    assert chosen is not None
    translation = chosen.translate(convert(PodGang, gang), Cluster(served_by(release, REGISTRY)))
    bodies = [(wanted.resource.kind, without_none(wanted.body)) for wanted in translation.objects]
    # Our names of Koordinator's groups end in a part of the gang's UID, which the example does not.
    plain: list[tuple[str, Json]] = json.loads(json.dumps(bodies).replace("-uid-1", ""))
    return {(kind, body["metadata"]["name"]): body for kind, body in plain}


@pytest.mark.parametrize(
    ("name", "backend", "release"),
    [
        ("01-k8s-1.35-workload", "default", "1.35"),
        ("02-k8s-1.36-workload-podgroup", "default", "1.36"),
        ("03-k8s-1.37-composite", "default", "1.37"),
        ("04-volcano", "volcano", "1.35"),
        ("05-koordinator", "koordinator", "1.35"),
    ],
)
def test_every_field_of_the_example_is_written(name: str, backend: str, release: str) -> None:
    """Kinds, names, annotations and specs."""
    ours = written(backend, release)
    # The topology is the administrator's, and pods have golden files of their own.
    shown = [each for each in documents(name) if each["kind"] not in ("ClusterNetworkTopology", "Pod")]
    assert {(each["kind"], each["metadata"]["name"]) for each in shown} == set(ours)
    for example in shown:
        own = ours[example["kind"], example["metadata"]["name"]]
        wanted = {"metadata": example["metadata"], "spec": example["spec"]}
        missing = merge_patch(own, wanted)
        for said in OTHERWISE_ANNOTATED:
            missing.get("metadata", {}).get("annotations", {}).pop(said, None)
        assert without_empty(missing) == ({"spec": OTHERWISE[name]} if name in OTHERWISE else {})


def without_empty(patch: Json) -> Json:
    """A patch without members that change nothing."""
    return {key: value for key, value in patch.items() if value not in ({}, {"annotations": {}})}
