"""Check rights: of components by their roles, of the caller by access reviews."""

from __future__ import annotations

from spinney.api.meta import Json, Resource
from spinney.api.rbac import ClusterRole
from spinney.app.components import load
from spinney.app.doctor.findings import Finding, Target
from spinney.kube.difference import covers
from spinney.kube.manifests import account_name, manifests

_SELF = Resource("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
# What an administrator does who installs, upgrades and maintains.
_NEEDED: tuple[tuple[str, str, str], ...] = (
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("patch", "rbac.authorization.k8s.io", "clusterroles"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ("patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("patch", "apps", "deployments"),
    ("list", "", "nodes"),
    ("list", "scheduling.run.ai", "queues"),
)


async def check_roles(target: Target) -> list[Finding]:
    """Whether the roles of installed components are those of this version."""
    findings = []
    for name in ("grove", "backends", "platform"):
        component = load(name)
        live = await target.client.find(ClusterRole.resource, account_name(component))
        if live is None:
            continue
        (wanted,) = (each for each in manifests(component, target.namespace) if each["kind"] == "ClusterRole")
        missing = [rule for rule in wanted["rules"] if not any(covers(other, rule) for other in live["rules"] or ())]
        if not missing:
            findings.append(Finding(check="rights", status="ok", text=f"{account_name(component)} has its rights"))
            continue
        text = f"{account_name(component)} lacks {len(missing)} rules of this version, such as {_words(missing[0])}"
        advice = "apply the objects of this version again, unless it serves some backends only"
        findings.append(Finding(check="rights", status="warning", text=text, advice=advice))
    return findings


async def check_own_rights(target: Target) -> list[Finding]:
    """What the asking user may do."""
    denied = [need for need in _NEEDED if not await _may(target, *need)]
    if not denied:
        return [Finding(check="rights", status="ok", text="you may install, upgrade and uninstall")]
    words = ", ".join(f"{verb} {resource}" for verb, _, resource in denied)
    advice = "only administrators install; to look around, the roles `view` and `spinney-cluster-view` are enough"
    return [Finding(check="rights", status="note", text=f"you may not {words}", advice=advice)]


async def _may(target: Target, verb: str, group: str, resource: str) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource}
    answer = await target.client.create(_SELF, {"spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])


def _words(rule: Json) -> str:
    return f"{'/'.join(rule['verbs'])} {', '.join(rule['resources'])}"
