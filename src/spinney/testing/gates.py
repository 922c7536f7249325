"""What each Kubernetes release needs switched on to schedule gangs."""

from __future__ import annotations


def gang_api(version: str) -> str:
    """The group and version in which this Kubernetes serves Workloads; empty before 1.35."""
    minor = int(version.split(".")[1])
    if minor < 35:
        return ""
    return {35: "scheduling.k8s.io/v1alpha1", 36: "scheduling.k8s.io/v1alpha2"}.get(minor, "scheduling.k8s.io/v1beta1")


def gang_gates(version: str) -> dict[str, tuple[str, ...]]:
    """The feature gates each program needs for gang scheduling."""
    minor = int(version.split(".")[1])
    if minor < 35:
        return {"kube-apiserver": (), "kube-controller-manager": (), "kube-scheduler": ()}
    gangs = ("GenericWorkload=true", "GangScheduling=true")
    if minor == 35:
        return {"kube-apiserver": gangs, "kube-controller-manager": (), "kube-scheduler": gangs}
    groups = (*gangs, "TopologyAwareWorkloadScheduling=true", "WorkloadAwarePreemption=true")
    # Without the last gate 1.36 spins on a gang that does not fit.
    calm = (*groups, "SchedulerPopFromBackoffQ=false")
    return {"kube-apiserver": groups, "kube-controller-manager": gangs[:1], "kube-scheduler": calm}
