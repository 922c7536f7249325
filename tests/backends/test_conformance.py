"""Every backend of ours passes the kit, and the kit catches those that do not conform."""

from __future__ import annotations

import pytest

from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.backends import conformance
from spinney.backends.interface import Backend, Cluster, Translation
from spinney.backends.kai import Kai
from spinney.backends.registry import Registry
from spinney.backends.served import Served
from spinney.kube.desired import Wanted


@pytest.mark.parametrize("backend", list(Registry.load()), ids=lambda backend: backend.name)
@pytest.mark.parametrize("check", conformance.CHECKS, ids=conformance.title)
def test_our_backends_conform(check: conformance.Check, backend: Backend) -> None:
    """The same checks that third parties run."""
    check(backend)


class Greedy(Kai):
    """Claims every scheduler."""

    def claims(self, scheduler_name: str) -> bool:
        return True


class Careless(Kai):
    """Writes into the pod it is handed."""

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        pod["spec"]["schedulerName"] = "kai-scheduler"
        return pod


class Orphaning(Kai):
    """Forgets whose its objects are."""

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        (wanted,) = super().translate(gang, cluster).objects
        metadata = {**wanted.body["metadata"], "ownerReferences": []}
        return Translation((Wanted(wanted.resource, {**wanted.body, "metadata": metadata}),))


@pytest.mark.parametrize(
    ("backend", "check", "message"),
    [
        (Greedy(), conformance.check_claims_its_own_scheduler, "must be False"),
        (Careless(), conformance.check_prepare_adds_and_keeps, "changed the pod it was handed"),
        (Orphaning(), conformance.check_objects_are_owned_and_named, "not owned by its gang"),
    ],
)
def test_the_kit_catches_mistakes(backend: Backend, check: conformance.Check, message: str) -> None:
    """Each rule can be broken, and says how."""
    with pytest.raises(conformance.NotConforming, match=message):
        check(backend)
