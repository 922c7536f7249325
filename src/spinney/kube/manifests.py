"""The manifests of a component: service account, RBAC rules, Service and webhook configurations."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.meta import Json, Resource
from spinney.kube.runtime import Component, Rule, Webhook

# What every component may do, because the runtime does it on its behalf.
EVENT_RULE = Rule(("",), ("events",), ("create", "patch"))
# Who reads metrics is looked up at the API server.
REVIEW_RULES = (
    Rule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
    Rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
)
LEASE_RULE = Rule(("coordination.k8s.io",), ("leases",), ("get", "create", "patch"))

_RBAC = "rbac.authorization.k8s.io/v1"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def probes() -> Json:
    """The probes of a component's container.

    On a busy node a start takes long: only what has started can be found dead. Who is started is asked at once whether
    it is ready, not ten seconds later.
    """
    alive = {"path": "/healthz", "port": "health"}
    return {
        "startupProbe": {"httpGet": alive, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 180},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 2, "timeoutSeconds": 5},
        "livenessProbe": {"httpGet": alive, "periodSeconds": 10, "timeoutSeconds": 10},
    }


def account_name(component: Component) -> str:
    """The name of a component's service account, roles and webhook configurations."""
    return f"{component.part_of}-{component.name}"


def manifests(component: Component, namespace: str, webhook_url: str = "") -> list[Json]:
    """Every object that an administrator applies before a component runs."""
    certificates = _certificate_rules(component) if component.webhooks else ()
    documents = rights(
        account_name(component),
        namespace,
        (*component.rules, EVENT_RULE, *REVIEW_RULES, *_registration_rules(component)),
        (*component.namespace_rules, LEASE_RULE, *certificates),
        component.part_of,
    )
    if component.webhooks and not webhook_url:
        documents.append(_service(component, namespace))
    return documents + webhook_configurations(component, namespace, webhook_url)


def rights(
    name: str, namespace: str, everywhere: Iterable[Rule], inside: Iterable[Rule], part_of: str = "spinney"
) -> list[Json]:
    """A service account with cluster-wide rules, and rules in its own namespace."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return [
        _object("v1", "ServiceAccount", name, part_of, namespace),
        {**_object(_RBAC, "ClusterRole", name, part_of), "rules": [rule_document(rule) for rule in everywhere]},
        _binding("ClusterRoleBinding", "ClusterRole", subject, part_of),
        {**_object(_RBAC, "Role", name, part_of, namespace), "rules": [rule_document(rule) for rule in inside]},
        _binding("RoleBinding", "Role", subject, part_of, namespace),
    ]


def webhook_resource(kind: str) -> Resource:
    """Where a kind of webhook configuration is served."""
    return Resource("admissionregistration.k8s.io/v1", kind, f"{kind.lower()}s", namespaced=False)


def webhook_configurations(
    component: Component, namespace: str, webhook_url: str = "", ca_bundle: str = ""
) -> list[Json]:
    """The component's webhook configurations: one mutating, one validating."""
    result = []
    for mutating, kind in ((True, "MutatingWebhookConfiguration"), (False, "ValidatingWebhookConfiguration")):
        hooks = [hook for hook in component.webhooks if hook.mutating == mutating]
        if hooks:
            document = _object("admissionregistration.k8s.io/v1", kind, account_name(component), component.part_of)
            document["webhooks"] = [_hook(component, hook, namespace, webhook_url, ca_bundle) for hook in hooks]
            result.append(document)
    return result


def _hook(component: Component, hook: Webhook, namespace: str, webhook_url: str, ca_bundle: str) -> Json:
    client: Json = {"service": {"name": account_name(component), "namespace": namespace, "path": hook.path}}
    if webhook_url:
        client = {"url": webhook_url.rstrip("/") + hook.path}
    if ca_bundle:
        client["caBundle"] = ca_bundle
    result: Json = {
        "name": _qualified(component, hook),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": client,
        "failurePolicy": hook.failure_policy,
        "matchPolicy": "Equivalent",
        "timeoutSeconds": hook.timeout_seconds,
        "namespaceSelector": _without_system(hook, namespace),
        "objectSelector": hook.object_selector,
        # With the default that the API server adds: else Helm and `kubectl apply` conflict over an equal list.
        "rules": [{"scope": "*", **rule} for rule in hook.rules],
    }
    if hook.match_conditions:
        conditions = ({"name": name, "expression": text} for name, text in hook.match_conditions.items())
        result["matchConditions"] = list(conditions)
    return result


def _without_system(hook: Webhook, namespace: str) -> Json:
    """The selector of a webhook; it leaves out new pods of our own namespace.

    Otherwise, once all replicas are gone, no pod of ours could come back.
    """
    if not any("pods" in rule["resources"] and "CREATE" in rule["operations"] for rule in hook.rules):
        return hook.namespace_selector
    system = {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system", namespace]}
    expressions = hook.namespace_selector.get("matchExpressions") or []
    return {**hook.namespace_selector, "matchExpressions": [system, *expressions]}


def _qualified(component: Component, hook: Webhook) -> str:
    """The webhook's name with at least three segments, as Kubernetes requires."""
    return hook.name if hook.name.count(".") >= 2 else f"{hook.name}.{account_name(component)}.svc"


def certificate_name(component: Component) -> str:
    """The Secret of a component's certificates."""
    return f"{account_name(component)}-webhook"


def _certificate_rules(component: Component) -> Iterable[Rule]:
    """Rules to keep certificates in one Secret; RBAC cannot limit creation to a name."""
    secrets = ("secrets",)
    return Rule(("",), secrets, ("create",)), Rule(("",), secrets, ("get", "patch"), (certificate_name(component),))


def _registration_rules(component: Component) -> Iterable[Rule]:
    """Rules to keep the CA bundle of the component's own webhook configurations current."""
    if not component.webhooks:
        return ()
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    group = ("admissionregistration.k8s.io",)
    return (
        Rule(group, kinds, ("create",)),
        Rule(group, kinds, ("get", "patch"), (account_name(component),)),
    )


def _service(component: Component, namespace: str) -> Json:
    service = _object("v1", "Service", account_name(component), component.part_of, namespace)
    service["spec"] = {
        "selector": {"app.kubernetes.io/name": account_name(component)},
        "ports": [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}],
    }
    return service


def _object(api_version: str, kind: str, name: str, part_of: str, namespace: str = "") -> Json:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": part_of}
    metadata: Json = {"name": name, "labels": labels}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _binding(kind: str, role: str, subject: Json, part_of: str, namespace: str = "") -> Json:
    binding = _object(_RBAC, kind, subject["name"], part_of, namespace)
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": subject["name"]}
    binding["subjects"] = [subject]
    return binding


def rule_document(rule: Rule) -> Json:
    """A rule as RBAC writes it."""
    result: Json = {"apiGroups": list(rule.groups), "resources": list(rule.resources), "verbs": list(rule.verbs)}
    if rule.names:
        result["resourceNames"] = list(rule.names)
    return result
