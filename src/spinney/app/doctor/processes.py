"""What runs: Deployments of the installation, their Leases, and what Config says."""

from __future__ import annotations

from datetime import timedelta

from spinney.api import labels
from spinney.api.apps import Deployment
from spinney.api.conditions import find
from spinney.api.coordination import Lease
from spinney.api.core import ServiceAccount
from spinney.api.kai import Config, SchedulingShard
from spinney.app.doctor.api_server import is_laptop
from spinney.app.doctor.findings import Finding, Target

_PLATFORM = "spinney-platform"
# A leader that stops gives its Lease up, and the next one takes it as soon as its caches are filled.
_HANDOVER = timedelta(seconds=30)
_ROLLED_OUT = "NewReplicaSetAvailable"
_ONLY = "--only="
# The Leases of Deployments whose Lease has another name.
_LEASES = {"spinney-grove": "grove-operator-leader-election", "pod-grouper": "spinney-podgrouper"}


async def check_deployments(target: Target) -> list[Finding]:
    """Whether all Deployments of the installation are available."""
    ours = [each for each in (await target.client.list(Deployment, target.namespace)).items if _is_ours(each)]
    if not ours and await is_laptop(target):
        text = "no Deployment is needed: `spinney up` runs all components in its own process"
        return [Finding(check="deployments", status="ok", text=text)]
    if not ours:
        text = f"nothing of ours is deployed in namespace {target.namespace}"
        advice = "spinney install | kubectl apply --server-side -f -, or name the namespace with -n"
        return [Finding(check="deployments", status="warning", text=text, advice=advice)]
    findings = [_deployment(each, target.namespace) for each in ours]
    return [*findings, *await _deleted(target, ours), *await _leases(target, ours)]


async def _deleted(target: Target, ours: list[Deployment]) -> list[Finding]:
    """Deployments that were deleted: service accounts of the same names are left."""
    if not any(each.metadata.labels.get(labels.PART_OF) == "spinney" for each in ours):
        return []
    accounts = (await target.client.list(ServiceAccount, target.namespace, labels=f"{labels.PART_OF}=spinney")).items
    missing = {account.name for account in accounts} - {deployment.name for deployment in ours}
    advice = "install again with the same values: helm upgrade, or spinney install"
    return [
        Finding(check="deployments", status="problem", text=f"Deployment {name} is missing", advice=advice)
        for name in sorted(missing)
    ]


def _is_ours(deployment: Deployment) -> bool:
    marks = deployment.metadata.labels
    return marks.get(labels.PART_OF) == "spinney" or marks.get(labels.MANAGED_BY) == labels.KAI_OPERATOR


def _deployment(deployment: Deployment, namespace: str) -> Finding:
    ready, wanted = deployment.status.available_replicas, deployment.spec.replicas
    if wanted == 0:
        text = f"{deployment.name} is scaled to 0: nobody does its work"
        advice = f"kubectl -n {namespace} scale deployment {deployment.name} --replicas=1"
        return Finding(check="deployments", status="problem", text=text, advice=advice)
    text = f"{deployment.name}: {ready} of {wanted} pods available"
    if ready >= (wanted or 0):
        return Finding(check="deployments", status="ok", text=text)
    why = find(deployment.status.conditions, "ReplicaFailure") or find(deployment.status.conditions, "Progressing")
    # Of a rollout that is over, the condition says that it succeeded.
    reason = f" ({why.message})" if why is not None and why.message and why.reason != _ROLLED_OUT else ""
    advice = f"kubectl -n {namespace} describe pods, and their logs"
    return Finding(check="deployments", status="problem", text=text + reason, advice=advice)


async def _leases(target: Target, ours: list[Deployment]) -> list[Finding]:
    """Whether each component has a leader: without one it does nothing, though its pods are ready."""
    held = {lease.name: lease for lease in (await target.client.list(Lease, target.namespace)).items}
    findings = []
    for name, lease in sorted(held.items()):
        if not _belongs(name, ours):
            continue
        age = target.clock.now() - (lease.spec.renew_time or target.clock.now())
        seconds = max(lease.spec.lease_duration_seconds, 1)
        if not lease.spec.holder_identity and age < _HANDOVER:
            text = f"Lease {name} was given up {age.total_seconds():.0f} s ago, and is changing hands"
            findings.append(Finding(check="leases", status="note", text=text, advice="look again in a minute"))
        elif not lease.spec.holder_identity or age > timedelta(seconds=2 * seconds):
            text = f"nobody holds Lease {name}: renewed {age.total_seconds():.0f} s ago"
            advice = "its component is stopped or cut off; its pods' logs say why. Delete the Lease if nothing needs it"
            findings.append(Finding(check="leases", status="problem", text=text, advice=advice))
        else:
            holder = lease.spec.holder_identity
            findings.append(Finding(check="leases", status="ok", text=f"{name} is held by {holder}"))
    return findings


def _belongs(lease: str, ours: list[Deployment]) -> bool:
    """Whether a Lease is that of a Deployment that should run, and not what an earlier one has left."""
    names = {_lease_of(each) for each in ours if each.spec.replicas}
    # The shard is appended to the Deployment of its scheduler.
    return any(
        lease in (name, f"spinney-{name}") or (name.startswith(f"{lease}-") and not lease.startswith("spinney-"))
        for name in names
    )


def _lease_of(deployment: Deployment) -> str:
    """The Lease of a Deployment, to whose name a choice of backends is appended."""
    pod = deployment.spec.template.get("spec") or {}
    arguments = [str(each) for container in pod.get("containers", ()) for each in container.get("args") or ()]
    chosen = next((each.removeprefix(_ONLY) for each in arguments if each.startswith(_ONLY)), "")
    if chosen:
        return "-".join(("spinney-backends", *sorted(chosen.split(","))))
    return _LEASES.get(deployment.name, deployment.name)


async def _platform_runs(target: Target) -> bool:
    return await target.client.find(Deployment.resource, (target.namespace, _PLATFORM)) is not None


async def check_config(target: Target) -> list[Finding]:
    """Whether the platform has done what Config and the shards say."""
    findings = []
    objects: list[Config | SchedulingShard] = [
        *(await target.client.list(Config)).items,
        *(await target.client.list(SchedulingShard)).items,
    ]
    if not any(isinstance(each, Config) for each in objects) and await _platform_runs(target):
        text = f"there is no Config {labels.KAI_CONFIG}: the platform deploys nothing"
        advice = (
            f"kubectl -n {target.namespace} rollout restart deployment {_PLATFORM}; it writes Config when it starts"
        )
        findings.append(Finding(check="config", status="problem", text=text, advice=advice))
    for each in objects:
        ready = find(each.status.conditions, "Ready")
        name = f"{each.resource.kind} {each.name}"
        if ready is not None and ready.status == "True":
            findings.append(Finding(check="config", status="ok", text=f"{name} is ready"))
        else:
            why = ready.message if ready is not None else "the platform has not looked at it"
            advice = "kubectl get configs,schedulingshards -o yaml shows all conditions; is spinney-platform running?"
            findings.append(Finding(check="config", status="problem", text=f"{name}: {why}", advice=advice))
    return findings
