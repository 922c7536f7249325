"""The kinds that stand-in operators serve: one row each, with the definition to install."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from spinney.api.apps import StatefulSet
from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Json, Object, Resource
from spinney.api.schema import AGE, Column
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.operators.jobset import job_set
from spinney.embedded.controllers.operators.kubeflow import Training
from spinney.embedded.controllers.operators.leader_worker_set import leader_worker_set
from spinney.embedded.controllers.operators.mpi import mpi_job
from spinney.embedded.controllers.operators.notebook import notebook
from spinney.embedded.controllers.operators.plan import Children, OperatorPlan, RayCluster
from spinney.embedded.controllers.operators.ray import ray_cluster, ray_job, ray_service

_STATE = Column("State", ".status.conditions[-1:].type", "string")


@dataclass(frozen=True)
class Operator:
    """A stand-in for the operator of one kind."""

    resource: Resource
    plan: Callable[[Untyped, Children, datetime], OperatorPlan]
    creates: tuple[type[Object], ...] = (Pod,)
    columns: tuple[Column, ...] = ()
    short_names: tuple[str, ...] = ()
    # Versions that are served beside the one that is stored.
    also: tuple[str, ...] = ()
    # Where the selector of its pods stands, for kinds with a scale subresource.
    selector: str = ""


def _training(kind: str, roles: str) -> Operator:
    name = kind.lower()
    resource = Resource("kubeflow.org/v1", kind, f"{name}s")
    return Operator(resource, Training(roles, f"{name}-controller"), columns=(_STATE,))


OPERATORS: tuple[Operator, ...] = (
    _training("PyTorchJob", "pytorchReplicaSpecs"),
    _training("TFJob", "tfReplicaSpecs"),
    _training("XGBoostJob", "xgbReplicaSpecs"),
    _training("JAXJob", "jaxReplicaSpecs"),
    Operator(
        Resource("kubeflow.org/v2beta1", "MPIJob", "mpijobs"),
        mpi_job,
        creates=(Pod, Job),
        columns=(_STATE,),
        also=("v1",),
    ),
    Operator(
        Resource("kubeflow.org/v1beta1", "Notebook", "notebooks"),
        notebook,
        creates=(StatefulSet,),
        columns=(Column("Ready", ".status.readyReplicas"),),
    ),
    Operator(
        RayCluster.resource,
        ray_cluster,
        columns=(
            Column("Desired Workers", ".status.desiredWorkerReplicas"),
            Column("Available Workers", ".status.availableWorkerReplicas"),
            Column("Status", ".status.state", "string"),
        ),
    ),
    Operator(
        Resource("ray.io/v1", "RayJob", "rayjobs"),
        ray_job,
        creates=(RayCluster, Job),
        columns=(
            Column("Job Status", ".status.jobStatus", "string"),
            Column("Deployment Status", ".status.jobDeploymentStatus", "string"),
            Column("Ray Cluster Name", ".status.rayClusterName", "string"),
        ),
    ),
    Operator(
        Resource("ray.io/v1", "RayService", "rayservices"),
        ray_service,
        creates=(RayCluster,),
        columns=(Column("Service Status", ".status.serviceStatus", "string"),),
    ),
    Operator(
        Resource("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets"),
        job_set,
        creates=(Job,),
        columns=(
            Column("TerminalState", ".status.terminalState", "string"),
            Column("Restarts", ".status.restarts"),
            Column("Suspended", ".spec.suspend", "boolean"),
        ),
    ),
    Operator(
        Resource("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets"),
        leader_worker_set,
        columns=(Column("Desired", ".spec.replicas"), Column("Ready", ".status.readyReplicas")),
        short_names=("lws",),
        selector=".status.hpaPodSelector",
    ),
)


def definition(operator: Operator) -> Json:
    """The CustomResourceDefinition of a kind: it accepts whatever the real one does."""
    resource = operator.resource
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    columns = [
        {"name": column.name, "jsonPath": column.path, "type": column.type} for column in (*operator.columns, AGE)
    ]
    subresources: Json = {"status": {}}
    if operator.selector:
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        subresources["scale"] = {**scale, "labelSelectorPath": operator.selector}
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == resource.version,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            "subresources": subresources,
            "additionalPrinterColumns": columns,
        }
        for version in (resource.version, *operator.also)
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(operator.short_names),
            },
            "versions": versions,
        },
    }
