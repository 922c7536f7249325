"""Kubeflow's notebook controller: a StatefulSet of one pod, or of none while stopped."""

from __future__ import annotations

from datetime import datetime

from spinney.api.apps import StatefulSet
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.operators.plan import Child, Children, OperatorPlan, child_metadata, labelled

_STOPPED = "kubeflow-resource-stopped"


def notebook(owner: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What a Notebook needs."""
    replicas = 0 if _STOPPED in owner.metadata.annotations else 1
    names = {"statefulset": owner.name, "notebook-name": owner.name}
    template = labelled(owner.spec.get("template") or {}, {**owner.metadata.labels, **names})
    body = {
        "metadata": child_metadata(owner, owner.name),
        "spec": {"replicas": replicas, "selector": {"matchLabels": names}, "template": template},
    }
    plan = OperatorPlan(wanted=[Child(StatefulSet, body)])
    plan.patch = [
        (child, {"spec": {"replicas": replicas}}) for child in children.sets if child.spec.replicas != replicas
    ]
    plan.status = {"readyReplicas": sum(child.status.ready_replicas for child in children.sets)}
    return plan
