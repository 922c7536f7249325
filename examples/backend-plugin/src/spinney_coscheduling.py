"""A backend for scheduler-plugins' Coscheduling: one PodGroup per gang, all roles in it."""

from spinney.api import labels
from spinney.api.meta import Resource
from spinney.api.owners import controller_reference
from spinney.backends.capabilities import Capabilities, Feature, lost
from spinney.backends.interface import Translation, Wanted
from spinney.backends.object_names import fitted
from spinney.backends.pod_edits import edited
from spinney.backends.readiness import all_exist
from spinney.backends.required_features import asked_by_gang

GROUP = Resource("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups")
FEATURES = frozenset({Feature.TOGETHER, Feature.GROUP_MINIMUM, Feature.ZERO_MINIMUM, Feature.PRIORITY})


class Coscheduling:
    name = "coscheduling"
    gate = "scheduling.x-k8s.io/gang"
    lease = ""
    resources = (GROUP,)

    def claims(self, scheduler_name):
        return scheduler_name == "scheduler-plugins-scheduler"

    def scheduler_name(self, requested):
        return "scheduler-plugins-scheduler"

    def capabilities(self, served):
        # The group counts pods, not roles: exact only if each role's surplus stays gated until the gang is bound.
        return Capabilities(GROUP.api_version if served.has(GROUP) else "", FEATURES, surplus_held=True)

    def check(self, pcs, served):
        return ()

    def gang_annotations(self, pcs, pod_specs):
        return {}

    def prepare(self, pod, gang, served):
        link = {"scheduling.x-k8s.io/pod-group": fitted(gang.name)}
        return edited(pod, labels=link, spec={"schedulerName": self.scheduler_name("")})

    def translate(self, gang, cluster):
        metadata = {"name": fitted(gang.name), "namespace": gang.namespace}
        metadata["labels"] = {labels.SCHEDULER_BACKEND: self.name}
        metadata["ownerReferences"] = [controller_reference(gang)]
        spec = {"minMember": sum(group.min_replicas for group in gang.spec.podgroups)}
        losses = lost(asked_by_gang(gang), self.capabilities(cluster.served))
        return Translation((Wanted(GROUP, {"metadata": metadata, "spec": spec}),), losses)

    def ready(self, gang, found):
        return all_exist(found)


BACKEND = Coscheduling()
