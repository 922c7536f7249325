"""The table of grouping rules by workload kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.services.podgrouper.context import Context, annotations_of, labels_of
from spinney.services.podgrouper.defaults import default_grouping, kind_defaults
from spinney.services.podgrouper.grouping import Grouping, GroupingError
from spinney.services.podgrouper.kinds import grove, jobsets, karta, kubeflow, kubernetes, ray, vendors

Rule = Callable[[Context], Awaitable[Grouping]]

_RAY_CLUSTER = ray.ray()
_RAY_JOB = ray.ray(("status", "rayClusterName"))
_RAY_SERVICE = ray.ray(
    ("status", "activeServiceStatus", "rayClusterName"), ("status", "pendingServiceStatus", "rayClusterName")
)

# By API version and kind; a version of `*` stands for all of the group.
RULES: dict[tuple[str, str], Rule] = {
    ("v1", "Pod"): kubernetes.pod,
    ("apps/v1", "Deployment"): kubernetes.deployment,
    ("apps/v1", "ReplicaSet"): default_grouping,
    ("apps/v1", "StatefulSet"): default_grouping,
    ("batch/v1", "Job"): kubernetes.job,
    ("batch/v1", "CronJob"): kubernetes.cron_job,
    ("kubeflow.org/v1", "TFJob"): kubeflow.replicated("tfReplicaSpecs"),
    ("kubeflow.org/v1", "XGBoostJob"): kubeflow.replicated("xgbReplicaSpecs", "Master", "Worker"),
    ("kubeflow.org/v1", "JAXJob"): kubeflow.replicated("jaxReplicaSpecs", "Worker"),
    ("kubeflow.org/v1", "MPIJob"): kubeflow.mpi_job,
    ("kubeflow.org/v2beta1", "MPIJob"): kubeflow.mpi_job,
    ("kubeflow.org/v1", "PyTorchJob"): kubeflow.pytorch_job,
    ("kubeflow.org/v1beta1", "Notebook"): kubeflow.notebook,
    ("kubeflow.org/v1alpha1", "ScheduledWorkflow"): default_grouping,
    ("ray.io/v1", "RayCluster"): _RAY_CLUSTER,
    ("ray.io/v1alpha1", "RayCluster"): _RAY_CLUSTER,
    ("ray.io/v1", "RayJob"): _RAY_JOB,
    ("ray.io/v1alpha1", "RayJob"): _RAY_JOB,
    ("ray.io/v1", "RayService"): _RAY_SERVICE,
    ("ray.io/v1alpha1", "RayService"): _RAY_SERVICE,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): jobsets.job_set,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): jobsets.leader_worker_set,
    ("serving.knative.dev/v1", "Service"): vendors.knative_service,
    ("amlarc.azureml.com/v1alpha1", "AmlJob"): vendors.aml_job,
    ("egx.nvidia.io/v1", "SPOTRequest"): vendors.spot_request,
    ("machinelearning.seldon.io/v1", "SeldonDeployment"): default_grouping,
    ("machinelearning.seldon.io/v1alpha2", "SeldonDeployment"): default_grouping,
    ("kubevirt.io/v1", "VirtualMachine"): default_grouping,
    ("kubevirt.io/v1", "VirtualMachineInstance"): default_grouping,
    ("workspace.devfile.io/v1alpha2", "DevWorkspace"): default_grouping,
    ("tekton.dev/v1", "PipelineRun"): default_grouping,
    ("tekton.dev/v1", "TaskRun"): default_grouping,
    ("run.ai/v1", "RunaiJob"): vendors.runai_job,
    ("grove.io/v1alpha1", "PodCliqueSet"): grove.pod_clique_set,
    ("grove.io/v1alpha1", "PodGangSet"): grove.pod_clique_set,
}

# These only create other workloads: the owner below them is grouped.
SKIPPED: frozenset[tuple[str, str]] = frozenset(
    {
        ("argoproj.io/v1alpha1", "Workflow"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
        ("nvidia.com/*", "DynamoGraphDeployment"),
        *(
            ("run.ai/*", f"{kind}Workload")
            for kind in ("Training", "Interactive", "Distributed", "Inference", "DistributedInference")
        ),
    }
)


async def group(context: Context) -> Grouping:
    """The group of a pod: by the rule of its workload's kind, else by a Karta, else by default."""
    if _is_skipped(context.top):
        context = await _below(context)
    try:
        return await _by_rule(context)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # Definitions that keep unknown fields let values of any type pass.
        name = f"{context.top['kind']} {context.top['metadata']['name']}"
        raise GroupingError(f"{name} is not as its kind should be: {type(error).__name__}: {error}") from error


async def _by_rule(context: Context) -> Grouping:
    rule = RULES.get((context.top["apiVersion"], context.top["kind"]))
    if rule is not None:
        return await rule(context)
    described = await karta.karta_of(context)
    return await (karta.grouped_by(described, context) if described else default_grouping(context))


def _is_skipped(owner: Json) -> bool:
    any_version = f"{owner['apiVersion'].rpartition('/')[0]}/*"
    return (owner["apiVersion"], owner["kind"]) in SKIPPED or (any_version, owner["kind"]) in SKIPPED


async def _below(context: Context) -> Context:
    """The context of the owner below a skipped one, with the skipped one's labels, annotations and defaults."""
    skipped = context.top
    if len(context.chain) < 2:
        below: Json | None = pod_as_owner(context.pod)
    else:
        next_owner = context.chain[-2]
        below = await context.lookup.get(
            next_owner["apiVersion"], next_owner["kind"], context.pod.namespace, next_owner["metadata"]["name"]
        )
    if below is None:
        raise GroupingError(f"the owner of pod {context.pod.name} below {skipped['kind']} is not there")
    defaults = kind_defaults(context, skipped)
    handed_down = {
        labels.PRIORITY_CLASS: defaults.priority_class,
        labels.PREEMPTIBILITY: defaults.preemptibility,
    }
    metadata = {
        **below["metadata"],
        "labels": {**{k: v for k, v in handed_down.items() if v}, **labels_of(skipped), **labels_of(below)},
        "annotations": {**annotations_of(skipped), **annotations_of(below)},
    }
    below = {**below, "metadata": metadata}
    inner = replace(context, top=below, chain=(*context.chain[:-2], below))
    return await _below(inner) if _is_skipped(below) else inner


def pod_as_owner(pod: Pod) -> Json:
    """A pod as the owner of its own group."""
    meta = pod.metadata
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "labels": dict(meta.labels),
            "annotations": dict(meta.annotations),
        },
    }
