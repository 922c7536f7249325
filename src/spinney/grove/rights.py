"""The operator's RBAC rules."""

from __future__ import annotations

from spinney.kube.runtime import Rule

_READ = ("get", "list", "watch")
_WRITE = ("create", "patch", "delete")
_ALL = (*_READ, *_WRITE)

RULES = (
    Rule(("grove.io",), ("podcliquesets",), (*_READ, "patch")),
    Rule(("grove.io",), ("clustertopologybindings",), _READ),
    Rule(("grove.io",), ("podcliques", "podcliquescalinggroups"), _ALL),
    Rule(
        ("grove.io",),
        ("podcliquesets/status", "podcliques/status", "podcliquescalinggroups/status"),
        ("patch",),
    ),
    # Owner references that block deletion need this where the API server checks them.
    Rule(
        ("grove.io",),
        ("podcliquesets/finalizers", "podcliques/finalizers", "podcliquescalinggroups/finalizers"),
        ("update",),
    ),
    Rule(("scheduler.grove.io",), ("podgangs",), _ALL),
    Rule(("scheduler.grove.io",), ("podgangs/status",), ("patch",)),
    Rule(("",), ("pods", "services", "serviceaccounts"), _ALL),
    # Tokens of init containers. Nobody needs to read them but the kubelet.
    Rule(("",), ("secrets",), ("create",)),
    # The operator can grant init containers only what it may do itself.
    Rule(("",), ("pods/status",), _READ),
    Rule(("",), ("nodes",), _READ),
    # Tell which gang APIs are served.
    Rule(("apiextensions.k8s.io",), ("customresourcedefinitions",), _READ),
    Rule(("",), ("events",), ("create", "patch")),
    Rule(("rbac.authorization.k8s.io",), ("roles", "rolebindings"), _ALL),
    Rule(("autoscaling",), ("horizontalpodautoscalers",), _ALL),
    Rule(("resource.k8s.io",), ("resourceclaims",), _ALL),
    Rule(("resource.k8s.io",), ("resourceclaimtemplates",), _READ),
    Rule(("resource.nvidia.com",), ("computedomains",), _ALL),
)
