"""Grove and KAI beside us: what collides, and what taking over does."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api import labels
from spinney.api.apps import Deployment
from spinney.app.doctor.findings import Finding, Patient

_GROVE = "grove-operator"
_GUIDE = "docs/users/operations/take-over.md"
_PART_OF = "app.kubernetes.io/part-of"


async def check_neighbours(patient: Patient) -> list[Finding]:
    """Upstream's operators that run here."""
    deployments = (await patient.client.list(Deployment)).items
    running = [each for each in deployments if each.spec.replicas and not _is_ours(each)]
    ours = {each.name for each in deployments if each.metadata.labels.get(_PART_OF) == "spinney"}
    findings = []
    for deployment in running:
        if deployment.name == _GROVE:
            findings.append(_grove(deployment, "spinney-grove" in ours))
        if deployment.name == labels.KAI_OPERATOR:
            findings.append(_kai(deployment, "spinney-platform" in ours))
    findings += _other_installations(patient, deployments)
    return findings or [Finding(check="neighbours", status="ok", text="neither Grove's nor KAI's operator runs here")]


def _other_installations(patient: Patient, deployments: Sequence[Deployment]) -> list[Finding]:
    """Ours in other namespaces: roles and webhooks have no namespace, so the last one installed has them."""
    places = sorted({each.namespace for each in deployments if _is_ours(each)} - {patient.namespace})
    if not places or not any(_is_ours(each) and each.namespace == patient.namespace for each in deployments):
        return []
    text = f"ours is also installed in {', '.join(places)}: both write the same objects, and share roles and webhooks"
    advice = f"keep one: spinney uninstall -n {places[0]} --keep-crds, then install the other again"
    return [Finding(check="neighbours", status="problem", text=text, advice=advice)]


def _is_ours(deployment: Deployment) -> bool:
    return deployment.metadata.labels.get(_PART_OF) == "spinney"


def _grove(deployment: Deployment, collides: bool) -> Finding:
    where = f"{deployment.namespace}/{deployment.name}"
    if collides:
        text = f"Grove's operator {where} runs beside ours: both write the same PodCliqueSets, and webhooks ask twice"
        advice = (
            f"stop one: kubectl -n {deployment.namespace} scale deployment {deployment.name} --replicas=0 ({_GUIDE})"
        )
        return Finding(check="neighbours", status="problem", text=text, advice=advice)
    text = f"Grove's operator runs as {where}"
    advice = f"ours takes its sets over without restarting pods once it is stopped, and gives them back ({_GUIDE})"
    return Finding(check="neighbours", status="note", text=text, advice=advice)


def _kai(deployment: Deployment, collides: bool) -> Finding:
    where = f"{deployment.namespace}/{deployment.name}"
    if collides:
        text = f"KAI's operator {where} runs beside our platform: both deploy what Config and SchedulingShards say"
        advice = (
            f"stop one: kubectl -n {deployment.namespace} scale deployment {deployment.name} --replicas=0 ({_GUIDE})"
        )
        return Finding(check="neighbours", status="problem", text=text, advice=advice)
    text = f"KAI's operator runs as {where}"
    advice = (
        "keep it with platform.enabled=false: our operator's gangs go to KAI. Or take over: queues, PodGroups and "
        f"bound pods stay, our scheduler goes on with them ({_GUIDE})"
    )
    return Finding(check="neighbours", status="note", text=text, advice=advice)
