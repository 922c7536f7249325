"""Every label, annotation, gate, finalizer and variable name of the wire, once. Condition types are in `reasons`."""

from __future__ import annotations

# Kubernetes
MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
HOSTNAME = "kubernetes.io/hostname"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_UID = "kubernetes.io/service-account.uid"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
KARPENTER_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"

# Values of the component label, by what the operator makes
GROVE_OPERATOR = "grove-operator"
HEADLESS_SERVICE = "pcs-headless-service"
POD_ROLE = "pod-role"
POD_ROLE_BINDING = "pod-role-binding"
POD_SERVICE_ACCOUNT = "pod-service-account"
TOKEN_SECRET = "pod-sa-token-secret"
SET_SCALING_GROUP = "pcs-podcliquescalinggroup"
SET_HPA = "pcs-hpa"
GANG = "podgang"
SET_CLIQUE = "pcs-podclique"
GROUP_CLIQUE = "pcsg-podclique"
RESOURCE_CLAIM = "resource-claim"
COMPUTE_DOMAIN = "pcs-computedomain"

# Grove: labels
PODCLIQUE = "grove.io/podclique"
PODGANG = "grove.io/podgang"
BASE_PODGANG = "grove.io/base-podgang"
SET_REPLICA_INDEX = "grove.io/podcliqueset-replica-index"
SCALING_GROUP = "grove.io/podcliquescalinggroup"
SCALING_GROUP_REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX = "grove.io/podclique-pod-index"
POD_TEMPLATE_HASH = "grove.io/pod-template-hash"
SCHEDULER_NAME = "grove.io/scheduler-name"
# Also an annotation on a PodCliqueSet, where it overrides the choice of backend.
SCHEDULER_BACKEND = "grove.io/scheduler-backend"
# Also an annotation on sets, scaling groups and cliques.
MNNVL_GROUP = "grove.io/mnnvl-group"

# Grove: annotations
DISABLE_PROTECTION = "grove.io/disable-managed-resource-protection"
TOPOLOGY_NAME = "grove.io/topology-name"
REUSE_RESERVATION = "grove.io/reuse-reservation"
# "true" on a set: its scheduler may lose what it cannot express; the gang says what in a condition.
ALLOW_DOWNGRADE = "grove.io/allow-scheduler-downgrade"
# On a gang: the times of its releases that failed (kube-scheduler 1.35).
RELEASE_ATTEMPTS = "grove.io/release-attempts"
# On a gang: what one pod of each role requests, and which attempt this is (YuniKorn).
ROLE_REQUESTS = "grove.io/role-requests"
ATTEMPT = "grove.io/scheduling-attempt"

# Grove: finalizers
SET_FINALIZER = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER = "grove.io/podclique.grove.io"
SCALING_GROUP_FINALIZER = "grove.io/podcliquescalinggroup.grove.io"
COMPUTE_DOMAIN_FINALIZER = "grove.io/computedomain-finalizer"
# Kubernetes' own: what the object owns is to stay.
ORPHAN_FINALIZER = "orphan"

# Scheduling gates, one per backend
DEFAULT_GATE = "scheduling.k8s.io/workload"
KAI_GATE = "grove.io/podgang"
KOORDINATOR_GATE = "scheduling.koordinator.sh/gang"
VOLCANO_GATE = "scheduling.volcano.sh/gang"
YUNIKORN_GATE = "yunikorn.apache.org/gang"
# Upstream Grove's, found on pods of an operator that ours takes over from.
PENDING_CREATION_GATE = "grove.io/podgang-pending-creation"

# Grove: variables in containers
ENV_SET_NAME = "GROVE_PCS_NAME"
ENV_SET_INDEX = "GROVE_PCS_INDEX"
ENV_CLIQUE_NAME = "GROVE_PCLQ_NAME"
ENV_HEADLESS_SERVICE = "GROVE_HEADLESS_SERVICE"
ENV_POD_INDEX = "GROVE_PCLQ_POD_INDEX"
ENV_SCALING_GROUP_NAME = "GROVE_PCSG_NAME"
ENV_SCALING_GROUP_INDEX = "GROVE_PCSG_INDEX"
ENV_SCALING_GROUP_PODS = "GROVE_PCSG_TEMPLATE_NUM_PODS"

# Grove: the init container that keeps the start-up order
INIT_CONTAINER = "grove-initc"
TOKEN_VOLUME = "sa-token-secret-vol"
TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
POD_INFO_VOLUME = "pod-info-vol"
POD_INFO_MOUNT = "/var/grove/pod-info"
MNNVL_CLAIM = "mnnvl-claim"

# KAI: queues, pools, priority (labels)
QUEUE = "kai.scheduler/queue"
PROJECT = "project"
NODE_POOL = "kai.scheduler/node-pool"
PRIORITY_CLASS = "priorityClassName"
PREEMPTIBILITY = "kai.scheduler/preemptibility"
TASK_PRIORITY = "kai.scheduler/task-priority"
USER = "user"
SUBGROUP = "kai.scheduler/subgroup-name"
BIND_SELECTED_NODE = "selected-node"
ACCOUNTING = "kai.scheduler/accounting"
APP = "app"
KAI_OPERATOR = "kai-operator"

# KAI: the gate of pods whose queue is full; switched on by an annotation of Config, which has no field for it
QUEUE_GATE = "kai.scheduler/queue-admission"
GATE_BLOCKED_PODS = "spinney.dev/gate-queue-blocked-pods"
REVIEW_QUEUE_ACCESS = "spinney.dev/review-queue-access"
ADOPT_QUEUED_PODS = "spinney.dev/adopt-queued-pods"

# Ours, on a PodCliqueSet: "true" lets the operator leave it alone (annotation)
PAUSED = "spinney.dev/paused"

# KAI: events about evictions (annotations)
EVICTED_PODS = "num-evicted-pods"
EVICTOR_NAME = "evictor-pod-group-name"
EVICTOR_NAMESPACE = "evictor-pod-group-namespace"
EVICTOR_ACTION = "evictor-action-type"
# Ours, on the same events: the queues of both sides, the GPUs of the pod, and since when it had run.
EVICTED_QUEUE = "spinney.dev/evicted-queue"
EVICTED_GPUS = "spinney.dev/evicted-gpus"
EVICTED_OTHERS = "spinney.dev/evicted-instead-of"
EVICTED_STARTED = "spinney.dev/evicted-started"
EVICTED_WORKLOAD = "spinney.dev/evicted-workload"
EVICTOR_QUEUE = "spinney.dev/evictor-queue"
EVICTOR_WORKLOAD = "spinney.dev/evictor-workload"

# KAI: grouping (annotations)
POD_GROUP = "pod-group-name"
SKIP_PODGROUPER = "kai.scheduler/skip-podgrouper"
TOP_OWNER = "kai.scheduler/top-owner-metadata"
PREEMPTION_DELAY = "kai.scheduler/preemption-delay"
STALENESS_GRACE_PERIOD = "kai.scheduler/staleness-grace-period"
TOPOLOGY = "kai.scheduler/topology"
TOPOLOGY_REQUIRED = "kai.scheduler/topology-required-placement"
TOPOLOGY_PREFERRED = "kai.scheduler/topology-preferred-placement"
SEGMENT_SIZE = "kai.scheduler/segment-size"
SEGMENT_TOPOLOGY_REQUIRED = "kai.scheduler/segment-topology-required-placement"
SEGMENT_TOPOLOGY_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"
BATCH_MIN_MEMBER = "kai.scheduler/batch-min-member"

# KAI: what the scheduler writes on a PodGroup (annotations)
STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
LAST_START = "kai.scheduler/last-start-timestamp"
LAST_EVICTION = "kai.scheduler/last-eviction-timestamp"

# KAI: GPU sharing
GPU_FRACTION = "gpu-fraction"
GPU_MEMORY = "gpu-memory"
GPU_FRACTION_DEVICES = "gpu-fraction-num-devices"
GPU_FRACTION_CONTAINER = "gpu-fraction-container-name"
MPS = "mps"
RECEIVED_RESOURCE_TYPE = "received-resource-type"
SHARED_GPU_CONFIGMAP = "runai/shared-gpu-configmap"
GPU_GROUP = "runai-gpu-group"
# Followed by the group's name, on pods that share several devices.
GPU_GROUP_PREFIX = "runai-gpu-group/"
RESERVED_GPU = "run.ai/reserve_for_gpu_index"
NUMA_PREDICTED = "kai.scheduler/numa-placement-predicted"
NUMA_OBSERVED = "kai.scheduler/numa-placement-observed"
SCALING_POD_FOR = "shared-gpu-pod-name"
SCALING_POD_FOR_NAMESPACE = "shared-gpu-pod-namespace"
ENV_VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
# What our fake device plugin gives a container: the GPUs which no driver can be asked for.
ENV_FAKE_GPUS = "SPINNEY_FAKE_GPUS"
ENV_GPU_PORTION = "GPU_PORTION"
ENV_NUM_GPUS = "RUNAI_NUM_OF_GPUS"
ENV_DEVICE_MEMORY_LIMIT = "CUDA_DEVICE_MEMORY_LIMIT"

# KAI: what is read from nodes
GPU_RESOURCE = "nvidia.com/gpu"
GPU_MEMORY_RESOURCE = "run.ai/gpu.memory"
NODE_GPU_MEMORY = "nvidia.com/gpu.memory"
NODE_FAKE_GPU = "run.ai/fake.gpu"
NODE_GPU_COUNT = "nvidia.com/gpu.count"
CPU_WORKER = "node-role.kubernetes.io/cpu-worker"
GPU_WORKER = "node-role.kubernetes.io/gpu-worker"
NODE_MIG_STRATEGY = "nvidia.com/mig.strategy"
NODE_MIG_ENABLED = "node-role.kubernetes.io/mig-enabled"


# KAI: well-known names
DEFAULT_QUEUE = "default-queue"
DEFAULT_PARENT_QUEUE = "default-parent-queue"
KAI_SCHEDULER = "kai-scheduler"
# Kubernetes' own, of pods that name none.
DEFAULT_SCHEDULER = "default-scheduler"
KAI_CONFIG = "kai-config"
RESERVATION_NAMESPACE = "kai-resource-reservation"
SCALE_ADJUST_NAMESPACE = "kai-scale-adjust"

# Volcano
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_GROUP_WRITTEN = "scheduling.volcano.sh/group-name"
VOLCANO_TASK = "volcano.sh/task-spec"
VOLCANO_QUEUE = "scheduling.grove.io/volcano-queue"
VOLCANO_NAMESPACE_QUEUE = "scheduling.volcano.sh/queue-name"

# Koordinator
KOORDINATOR_POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
KOORDINATOR_GROUPS = "gang.scheduling.koordinator.sh/groups"
KOORDINATOR_MODE = "gang.scheduling.koordinator.sh/mode"
KOORDINATOR_MATCH_POLICY = "gang.scheduling.koordinator.sh/match-policy"
KOORDINATOR_TOTAL = "gang.scheduling.koordinator.sh/total-number"
KOORDINATOR_TOPOLOGY = "gang.scheduling.koordinator.sh/network-topology-spec"
KOORDINATOR_TOPOLOGY_INDEX = "gang.scheduling.koordinator.sh/network-topology-index"
KOORDINATOR_QUOTA = "quota.scheduling.koordinator.sh/name"
# On a PodGang: how its PodGroups are named.
KOORDINATOR_NAMES = "grove.io/koordinator-group-names"

# YuniKorn
YUNIKORN_APP_ID = "yunikorn.apache.org/app-id"
YUNIKORN_QUEUE = "yunikorn.apache.org/queue"
YUNIKORN_PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"
# Before YuniKorn 1.7.
YUNIKORN_PLACEHOLDER_BEFORE = "yunikorn.apache.org/placeholder"
YUNIKORN_TASK_GROUP = "yunikorn.apache.org/task-group-name"
YUNIKORN_TASK_GROUPS = "yunikorn.apache.org/task-groups"
YUNIKORN_POLICY = "yunikorn.apache.org/schedulingPolicyParameters"

# Spinney: which nodes are simulated, and what they pretend (annotations)
SIMULATED = "spinney.dev/simulated"
NODE_STATE = "spinney.dev/state"
# The group of a stand-in autoscaler that a simulated node belongs to (label).
NODE_GROUP = "spinney.dev/node-group"
KWOK_NODE = "kwok.x-k8s.io/node"

# Spinney: on a workload or queue that a verb changed: the patch that takes it back (annotation)
UNDO = "spinney.dev/undo"

# Spinney: what the containers of a simulated pod do (annotations; `<key>.<container>` speaks of one container)
START_AFTER = "spinney.dev/start-after"
READY_AFTER = "spinney.dev/ready-after"
RUN_FOR = "spinney.dev/run-for"
EXIT_CODE = "spinney.dev/exit-code"
CRASHES = "spinney.dev/crashes"
STOP_AFTER = "spinney.dev/stop-after"
CPU_USAGE = "spinney.dev/cpu-usage"
MEMORY_USAGE = "spinney.dev/memory-usage"

# What other workloads' controllers write on their pods, read by the grouper.
LAST_APPLIED_CONFIGURATION = "kubectl.kubernetes.io/last-applied-configuration"
SPARK_APP_NAME = "spark-app-name"
SPARK_APP_SELECTOR = "spark-app-selector"
TRAINING_JOB_NAME = "training.kubeflow.org/job-name"
TRAINING_JOB_ROLE = "training.kubeflow.org/job-role"
TRAINING_REPLICA_TYPE = "training.kubeflow.org/replica-type"
TRAINING_REPLICA_INDEX = "training.kubeflow.org/replica-index"
RAY_GROUP = "ray.io/group"
RAY_NODE_TYPE = "ray.io/node-type"
RAY_PRIORITY_CLASS_NAME = "ray.io/priority-class-name"
JOBSET_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
LWS_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
KNATIVE_REVISION = "serving.knative.dev/revision"
KNATIVE_MIN_SCALE = "autoscaling.knative.dev/min-scale"

# On BindRequests: the decision they belong to, and how many of them it has.
DECISION = "spinney.dev/decision"
DECISION_MEMBERS = "spinney.dev/decision-members"
