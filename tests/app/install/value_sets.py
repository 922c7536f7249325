"""Ten choices of values, such as users make."""

from __future__ import annotations

from spinney.api.meta import Json

VALUE_SETS: dict[str, Json] = {
    "defaults": {},
    "two-replicas": {"replicas": 2, "podDisruptionBudgets": True, "dashboard": {"config": {"login": "proxy"}}},
    "registry": {
        "image": {"repository": "registry.example.com/team/spinney", "tag": "1.2.3", "pullSecrets": ["a", "b"]},
        "log": {"format": "text", "level": "debug"},
    },
    "operator-only": {
        "backends": {"enabled": False},
        "platform": {"enabled": False},
        "dashboard": {"enabled": False},
        "priorityClasses": False,
    },
    "backends-apart": {
        "backends": {
            "deployments": [{"name": "kai", "only": ["kai"]}, {"name": "others", "only": ["volcano", "default"]}],
            "resources": {"limits": {"memory": "1Gi"}},
        }
    },
    "reserved-nodes": {
        "tolerations": [{"key": "role", "operator": "Equal", "value": "control", "effect": "NoSchedule"}],
        "nodeSelector": {"role": "control"},
        "priorityClassName": "system-cluster-critical",
    },
    "cert-manager": {"certificates": {"mode": "cert-manager", "issuerKind": "ClusterIssuer", "issuerName": "corp"}},
    "own-issuer": {"certificates": {"mode": "cert-manager"}, "monitoring": {"labels": {"release": "prometheus"}}},
    "supplied": {
        "certificates": {"mode": "supplied", "secret": "mine", "caBundle": "Y2E="},
        "excludedNamespaces": ["quiet", "silent"],
        "networkPolicies": False,
        "aggregatedRoles": False,
        "monitoring": {"dashboard": False, "enabled": False},
    },
    "schedulers": {
        "config": {
            "global": {"replicaCount": 3},
            "admission": {"gpuSharing": False},
            "binder": {"replicas": 2},
            "queueController": {"queueLabelToMetricLabel": "<a&b>=c"},
        },
        "shards": [{"name": "default", "spec": {}}, {"name": "b", "spec": {"partitionLabelValue": "b"}}],
        "queues": {"gpu": {"quota": 0, "limit": 8}, "memory": {"overQuotaWeight": 0.5}},
        "grove": {"config": {"authorizer": {"enabled": True}, "logLevel": "error"}},
    },
}
