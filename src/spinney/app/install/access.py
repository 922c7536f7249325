"""Accounts with exact rights, webhooks, and roles for users."""

from __future__ import annotations

from dataclasses import replace

from spinney.api import grove, kai, podgang
from spinney.api.coordination import Lease
from spinney.api.kai import Config, SchedulingShard
from spinney.api.meta import Json, Object
from spinney.app.components import load
from spinney.app.install.template import (
    NAMESPACE,
    Tree,
    When,
    all_of,
    includes,
    is_,
    item,
    lifted,
    text,
    value,
)
from spinney.app.install.workloads import BACKENDS_NAME, labels_of, named
from spinney.backends.component import RULES
from spinney.backends.registry import Registry
from spinney.kube.manifests import manifests, rule_document
from spinney.scheduler.intake.snapshot import KINDS

# Stand in for what only an installation knows, where objects are made from a component.
_NAMESPACE, _NAME = "@namespace@", "@name@"
_MARKS = {_NAMESPACE: NAMESPACE}
_SUPPLIED = is_(value("certificates.mode"), "supplied")
_CERT_MANAGER = is_(value("certificates.mode"), "cert-manager")
_CERTIFICATE = "spinney-grove"

_SEEN: tuple[type[Object], ...] = (
    grove.PodCliqueSet,
    grove.PodClique,
    grove.PodCliqueScalingGroup,
    grove.ClusterTopologyBinding,
    podgang.PodGang,
    kai.PodGroup,
    kai.BindRequest,
    kai.Queue,
    kai.Topology,
)
# What users make themselves; the rest is made for them.
_MADE: tuple[type[Object], ...] = (grove.PodCliqueSet, kai.PodGroup)
# What the plans of `spinney queues`, `capacity`, `top` and `whatif` rest on, and what `doctor` and `backends` look at.
_CLUSTER: tuple[type[Object], ...] = (*KINDS.values(), Config, SchedulingShard, Lease)
_SCALED: tuple[type[Object], ...] = (grove.PodCliqueSet, grove.PodClique, grove.PodCliqueScalingGroup)


def account(name: str) -> list[Tree]:
    """The account, roles, Service and webhook configurations of a component."""
    documents: list[Tree] = lifted(manifests(load(name), _NAMESPACE), _MARKS)
    for document in documents:
        if "Webhook" in document["kind"]:
            _trust(document)
    return documents


def _trust(document: Tree) -> None:
    """Say who signs the certificate, where the component does not do so itself."""
    source = text(NAMESPACE, f"/{_CERTIFICATE}")
    document["metadata"]["annotations"] = When(_CERT_MANAGER, {"cert-manager.io/inject-ca-from": source})
    for hook in document["webhooks"]:
        hook["clientConfig"]["caBundle"] = When(_SUPPLIED, value("certificates.caBundle"))


def certificate() -> list[Tree]:
    """The Certificate that cert-manager keeps, and an issuer of our own unless another is named."""
    own_issuer = all_of(_CERT_MANAGER, is_(value("certificates.issuerKind"), ""))
    kind = {"kind": When(value("certificates.issuerKind"), value("certificates.issuerKind"))}
    wanted = named("cert-manager.io/v1", "Certificate", _CERTIFICATE)
    wanted["spec"] = {
        "secretName": value("certificates.secret"),
        "dnsNames": [
            text("spinney-grove.", NAMESPACE, ".svc"),
            text("spinney-grove.", NAMESPACE, ".svc.cluster.local"),
        ],
        "issuerRef": {"name": value("certificates.issuerName"), **kind},
    }
    issuer = named("cert-manager.io/v1", "Issuer", value("certificates.issuerName"))
    return [When(own_issuer, {**issuer, "spec": {"selfSigned": {}}}), When(_CERT_MANAGER, wanted)]


def backends_account() -> list[Tree]:
    """The account of one Deployment of backends, with the rights of those that it runs; inside of a loop."""
    component = replace(load("backends"), name=_NAME, rules=())
    documents: list[Tree] = lifted(manifests(component, _NAMESPACE), {**_MARKS, f"spinney-{_NAME}": BACKENDS_NAME})
    role = next(document for document in documents if document["kind"] == "ClusterRole")
    chosen = [
        When(includes(item("only"), backend.name), rule_document(rule))
        for backend in Registry.load()
        for rule in backend.rules
    ]
    role["rules"] = [*(rule_document(rule) for rule in RULES), *role["rules"], *chosen]
    return documents


def user_roles() -> list[Json]:
    """Roles that Kubernetes adds to view, edit and admin, and one to read the whole cluster."""
    read = [_rule(kind, ("get", "list", "watch")) for kind in _SEEN]
    write = [_rule(kind, ("create", "update", "patch", "delete", "deletecollection")) for kind in _MADE]
    scale = [_rule(kind, ("get", "update", "patch"), "/scale") for kind in _SCALED]
    # Kubernetes' role view shows no nodes, and adding them to it would show them to all of its users.
    whole: Json = named("rbac.authorization.k8s.io/v1", "ClusterRole", "spinney-cluster-view", namespaced=False)
    whole["rules"] = [_rule(kind, ("get", "list", "watch")) for kind in _CLUSTER]
    aggregated = (("view", read), ("edit", [*write, *scale]), ("admin", [_gangs()]))
    return [*(_user_role(name, rules) for name, rules in aggregated), whole]


def _gangs() -> Json:
    """Who administers a namespace may delete a gang, which is made anew."""
    return _rule(podgang.PodGang, ("delete",))


def _user_role(name: str, rules: list[Json]) -> Json:
    role: Json = named("rbac.authorization.k8s.io/v1", "ClusterRole", f"spinney-{name}", namespaced=False)
    role["metadata"]["labels"] = {
        **labels_of(f"spinney-{name}"),
        f"rbac.authorization.k8s.io/aggregate-to-{name}": "true",
    }
    return {**role, "rules": rules}


def _rule(kind: type[Object], verbs: tuple[str, ...], subresource: str = "") -> Json:
    resource = kind.resource
    return {"apiGroups": [resource.group], "resources": [resource.plural + subresource], "verbs": list(verbs)}
