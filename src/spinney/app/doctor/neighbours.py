"""Grove and KAI beside us: what collides, and what taking over does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.api import labels
from spinney.api.apps import Deployment
from spinney.app.doctor.findings import Finding, Target

_GUIDE = "docs/users/operations/take-over.md"


@dataclass(frozen=True)
class _Neighbour:
    """An upstream operator, our Deployment for the same work, and what to say about the two."""

    title: str
    ours: str
    collision: str
    takeover: str


# By the name of their Deployment.
_NEIGHBOURS = {
    "grove-operator": _Neighbour(
        "Grove's operator",
        ours="spinney-grove",
        collision="ours: both write the same PodCliqueSets, and webhooks ask twice",
        takeover="ours takes its sets over without restarting pods once it is stopped, and gives them back",
    ),
    labels.KAI_OPERATOR: _Neighbour(
        "KAI's operator",
        ours="spinney-platform",
        collision="our platform: both deploy what Config and SchedulingShards say",
        takeover="keep it with platform.enabled=false: our operator's gangs go to KAI. Or take over: queues, PodGroups "
        "and bound pods stay, our scheduler goes on with them",
    ),
}


async def check_neighbours(target: Target) -> list[Finding]:
    """Upstream's operators that run here."""
    deployments = (await target.client.list(Deployment)).items
    running = [each for each in deployments if each.spec.replicas and not _is_ours(each)]
    ours = {each.name for each in deployments if _is_ours(each)}
    findings = [
        _finding(neighbour, deployment, collides=neighbour.ours in ours)
        for deployment in running
        if (neighbour := _NEIGHBOURS.get(deployment.name)) is not None
    ]
    findings += _other_installations(target, deployments)
    return findings or [Finding(check="neighbours", status="ok", text="neither Grove's nor KAI's operator runs here")]


def _other_installations(target: Target, deployments: Sequence[Deployment]) -> list[Finding]:
    """Ours in other namespaces: roles and webhooks have no namespace, so the last one installed has them."""
    places = sorted({each.namespace for each in deployments if _is_ours(each)} - {target.namespace})
    if not places or not any(_is_ours(each) and each.namespace == target.namespace for each in deployments):
        return []
    text = f"ours is also installed in {', '.join(places)}: both write the same objects, and share roles and webhooks"
    advice = f"keep one: spinney uninstall -n {places[0]} --keep-crds, then install the other again"
    return [Finding(check="neighbours", status="problem", text=text, advice=advice)]


def _is_ours(deployment: Deployment) -> bool:
    return deployment.metadata.labels.get(labels.PART_OF) == "spinney"


def _finding(neighbour: _Neighbour, deployment: Deployment, *, collides: bool) -> Finding:
    where = f"{deployment.namespace}/{deployment.name}"
    if collides:
        text = f"{neighbour.title} {where} runs beside {neighbour.collision}"
        advice = (
            f"stop one: kubectl -n {deployment.namespace} scale deployment {deployment.name} --replicas=0 ({_GUIDE})"
        )
        return Finding(check="neighbours", status="problem", text=text, advice=advice)
    text = f"{neighbour.title} runs as {where}"
    return Finding(check="neighbours", status="note", text=text, advice=f"{neighbour.takeover} ({_GUIDE})")
