"""What is special about each built-in kind when it is written."""

from __future__ import annotations

GENERATIONS = frozenset(
    (
        "/pods",
        "networking.k8s.io/ingresses",
        "networking.k8s.io/ingressclasses",
        "networking.k8s.io/networkpolicies",
        "discovery.k8s.io/endpointslices",
        "scheduling.k8s.io/priorityclasses",
        "resource.k8s.io/resourceslices",
        "resource.k8s.io/deviceclasses",
        "flowcontrol.apiserver.k8s.io/flowschemas",
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "apiextensions.k8s.io/customresourcedefinitions",
    )
)
NO_OVERWRITE = frozenset(
    (
        "node.k8s.io/runtimeclasses",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/csistoragecapacities",
        "storage.k8s.io/volumeattachments",
        "storage.k8s.io/csinodes",
        "coordination.k8s.io/leases",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "apiextensions.k8s.io/customresourcedefinitions",
    )
)
CREATES_ON_UPDATE = frozenset(
    (
        "node.k8s.io/runtimeclasses",
        "rbac.authorization.k8s.io/rolebindings",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/roles",
        "rbac.authorization.k8s.io/clusterroles",
        "coordination.k8s.io/leases",
        "/limitranges",
        "/events",
        "/services",
        "/endpoints",
    )
)
ANSWERS_WITH_DELETED = frozenset(
    (
        "resource.k8s.io/resourceclaimtemplates",
        "resource.k8s.io/resourceslices",
        "resource.k8s.io/resourceclaims",
        "resource.k8s.io/deviceclasses",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/storageclasses",
        "storage.k8s.io/volumeattachments",
        "storage.k8s.io/csinodes",
        "storage.k8s.io/volumeattributesclasses",
        "/resourcequotas",
        "/persistentvolumes",
        "/serviceaccounts",
        "/persistentvolumeclaims",
        "/namespaces",
        "/pods",
        "/services",
    )
)
