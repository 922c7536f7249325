"""A backend for scheduler-plugins' Coscheduling: one PodGroup per gang, all roles in it."""

from spinney import backends as kit

GROUP = kit.Resource("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups")
FEATURES = frozenset({kit.Feature.TOGETHER, kit.Feature.GROUP_MINIMUM, kit.Feature.ZERO_MINIMUM, kit.Feature.PRIORITY})


class Coscheduling:
    name = "coscheduling"
    gate = "scheduling.x-k8s.io/gang"
    lease = ""
    resources = (GROUP,)
    rules = kit.may_write(GROUP)
    # scheduler-plugins installs its CRD itself.
    crds = ()

    def claims(self, scheduler_name):
        return scheduler_name == "scheduler-plugins-scheduler"

    def scheduler_name(self, requested):
        return "scheduler-plugins-scheduler"

    def capabilities(self, served):
        # The group counts pods, not roles: exact only if each role's surplus stays gated until the gang is bound.
        return kit.Capabilities(GROUP.api_version if served.has(GROUP) else "", FEATURES, surplus_held=True)

    def check(self, pcs, served):
        return ()

    def gang_annotations(self, pcs, pod_specs):
        return {}

    def prepare(self, pod, gang, served):
        link = {"scheduling.x-k8s.io/pod-group": kit.fitted_name(gang.name)}
        return kit.edited_pod(pod, labels=link, spec={"schedulerName": self.scheduler_name("")})

    def translate(self, gang, cluster):
        metadata = kit.owned_metadata(gang, kit.fitted_name(gang.name))
        spec = {"minMember": sum(group.min_replicas for group in gang.spec.podgroups)}
        losses = kit.gang_losses(gang, self.capabilities(cluster.served))
        return kit.Translation((kit.Wanted(GROUP, {"metadata": metadata, "spec": spec}),), losses)

    def ready(self, gang, objects):
        return kit.all_exist(objects)


BACKEND = Coscheduling()
