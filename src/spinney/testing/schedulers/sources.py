"""Where each scheduler comes from: its Go module, its programs, and the files of its source that it runs with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """One scheduler as published: `programs` by the package of each, `files` by the folder that takes them."""

    name: str
    module: str
    version: str
    programs: Mapping[str, str]
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


SOURCES = {
    source.name: source
    for source in (
        Source(
            "volcano",
            "volcano.sh/volcano",
            "v1.15.1",
            {"vc-scheduler": "cmd/scheduler", "vc-controller-manager": "cmd/controller-manager"},
            {
                # Without the job flow kinds the controller manager never opens the default queue.
                "crds": ("config/crd/volcano/bases/*.yaml", "config/crd/jobflow/bases/*.yaml"),
                "config": ("installer/helm/chart/volcano/config/volcano-scheduler.conf",),
            },
        ),
        Source(
            "koordinator",
            "github.com/koordinator-sh/koordinator",
            "v1.8.0",
            {"koord-scheduler": "cmd/koord-scheduler"},
            {"crds": ("config/crd/bases/*.yaml",), "config": ("config/manager/scheduler-config.yaml",)},
        ),
        Source(
            "yunikorn",
            "github.com/apache/yunikorn-k8shim",
            "v1.9.0",
            {"yunikorn": "pkg/cmd/shim"},
        ),
    )
}

# The Kubernetes libraries of all three, so that one compilation of these serves them all.
KUBERNETES = "v1.35.4"
# What these modules, or what they require, name in versions that are not published or do not build together.
REPLACEMENTS = {
    "k8s.io/kubernetes": KUBERNETES,
    "k8s.io/kube-openapi": "v0.0.0-20250910181357-589584f1c912",
    "k8s.io/klog/v2": "v2.130.1",
    "k8s.io/legacy-cloud-providers": "v0.30.0",
    "github.com/go-jose/go-jose/v4": "v4.1.4",
    "github.com/gophercloud/gophercloud": "v0.1.0",
    "github.com/prometheus/prometheus": "v0.39.2",
    "google.golang.org/api": "v0.114.0",
    "github.com/apache/yunikorn-core": "v1.9.0",
    "github.com/apache/yunikorn-scheduler-interface": "v1.9.0",
}
# No checksum database knows it.
WITHOUT_SUM = ("github.com/apache/yunikorn-k8shim",)

# Volcano's API types are published up to this version. Those of 1.15 add one constant, which is written beside them.
VOLCANO_APIS = ("volcano.sh/apis", "v1.14.0")
VOLCANO_APIS_ADDED = {
    "pkg/apis/scheduling/v1beta1/added.go": (
        'package v1beta1\n\nconst QueueAllocationGateKey = GroupName + "/queue-allocation-gate"\n'
    )
}
