"""Condition types, phases, and the reasons of conditions and events, once."""

from __future__ import annotations

# Pods and nodes
POD_SCHEDULED = "PodScheduled"
POD_READY = "Ready"
POD_BOUND = "PodBound"
DISRUPTION_TARGET = "DisruptionTarget"
UNSCHEDULABLE = "Unschedulable"
# Volcano, on pods that would have a node if the others of their gang had one, too.
SCHEDULABLE = "Schedulable"
SCHEDULING_GATED = "SchedulingGated"
NODE_READY = "Ready"

# PodGang: condition types
INITIALIZED = "Initialized"
SCHEDULED = "Scheduled"
READY = "Ready"
UNHEALTHY = "Unhealthy"
BACKEND_READY = "BackendReady"
DOWNGRADED = "Downgraded"
TOPOLOGY_VIOLATED = "TopologyViolated"
SURPLUS_WAITING = "SurplusWaiting"

# PodGang: phases (a PodGroup is Scheduling, too, and never Starting)
PENDING = "Pending"
SCHEDULING = "Scheduling"
STARTING = "Starting"
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"

# PodGang: reasons
PODS_CREATION_PENDING = "PodGangPodsCreationPending"
PODS_CREATED = "PodGangPodsCreated"
SYNCED = "Synced"
SCHEDULER_REPORTS = "SchedulerReports"
NOT_SERVED = "NotServed"
NOT_EXPRESSIBLE = "NotExpressible"
SETUP_MISSING = "SetupMissing"
QUEUE_NOT_FOUND = "QueueNotFound"
NAME_TAKEN = "NameTaken"
SYNC_FAILED = "SyncFailed"
SCHEDULER_SILENT = "SchedulerSilent"
DOES_NOT_FIT_YET = "DoesNotFitYet"
WAITS_FOR_OTHER_GANG = "WaitsForOtherGang"
WAITS_FOR_PODS = "WaitsForPods"
RELEASED = "Released"
NEVER_BOUND = "NeverBound"
NOTHING_LOST = "NothingLost"
FEATURES_LOST = "FeaturesLost"
PODS_SCHEDULED = "PodsScheduled"
PODS_READY = "PodsReady"
PODS_NOT_READY = "PodsNotReady"
WAITING_FOR_PODS = "WaitingForPods"
WAITING_FOR_BASE_GANG = "WaitingForBaseGang"
WAITING_FOR_SCHEDULER = "WaitingForScheduler"
BACKEND_NOT_READY = "BackendNotReady"
REQUIRED_TOPOLOGY_BROKEN = "RequiredTopologyBroken"
REQUIRED_TOPOLOGY_HELD = "RequiredTopologyHeld"
SURPLUS_UNSCHEDULABLE = "SurplusUnschedulable"
SURPLUS_PLACED = "SurplusPlaced"
HEALTHY = "Healthy"
BELOW_MINIMUM = "BelowMinimum"
PODS_DISRUPTED = "PodsDisrupted"
TERMINATION_BY_OPERATOR = "TerminationByOperator"
UNDISTURBED = "Undisturbed"
# Events of a backend on a gang.
BACKEND_SYNCED = "BackendSynced"
RECREATED = "Recreated"

# PodClique
CLIQUE_SCHEDULED = "PodCliqueScheduled"
SUFFICIENT_SCHEDULED_PODS = "SufficientScheduledPods"
INSUFFICIENT_SCHEDULED_PODS = "InsufficientScheduledPods"
MIN_AVAILABLE_BREACHED = "MinAvailableBreached"
SCHEDULED_BELOW_MIN_AVAILABLE = "ScheduledReplicasBelowMinAvailable"
INSUFFICIENT_READY_PODS = "InsufficientReadyPods"
SUFFICIENT_READY_PODS = "SufficientReadyPods"
# A reason of MinAvailableBreached, and a condition type of its own.
UPDATE_IN_PROGRESS = "UpdateInProgress"
PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"

# PodCliqueScalingGroup
INSUFFICIENT_AVAILABLE_REPLICAS = "InsufficientAvailablePodCliqueScalingGroupReplicas"
SUFFICIENT_AVAILABLE_REPLICAS = "SufficientAvailablePodCliqueScalingGroupReplicas"
GANG_TERMINATION_IN_PROGRESS = "GangTerminationInProgress"
GANG_TERMINATION_ACTIVE = "GangTerminationActive"

# PodCliqueSet
TOPOLOGY_LEVELS_UNAVAILABLE = "TopologyLevelsUnavailable"
ALL_LEVELS_AVAILABLE = "AllClusterTopologyLevelsAvailable"
LEVELS_UNAVAILABLE = "ClusterTopologyLevelsUnavailable"
CLUSTER_TOPOLOGY_NOT_FOUND = "ClusterTopologyNotFound"
TOPOLOGY_NAME_MISSING = "TopologyNameMissing"
TOPOLOGY_AWARE_SCHEDULING_DISABLED = "TopologyAwareSchedulingDisabled"

SUFFICIENT_REPLICAS = "SufficientReplicas"
INSUFFICIENT_REPLICAS = "InsufficientReplicas"

# ClusterTopologyBinding
SCHEDULER_TOPOLOGY_DRIFT = "SchedulerTopologyDrift"
IN_SYNC = "InSync"
DRIFT = "Drift"

# Events of the operator
BACKEND_CHOSEN = "BackendChosen"
PAUSED = "Paused"
BACKEND_WARNING = "BackendWarning"
PRIORITY_CLASSES_DIFFER = "PriorityClassesDiffer"
RECONCILE_ERROR = "ReconcileError"
POD_CREATE_FAILED = "PodCreateFailed"
SET_REPLICA_DELETE_SUCCESSFUL = "PodCliqueSetReplicaDeleteSuccessful"
ALL_SCHEDULED_REPLICAS_LOST = "AllScheduledReplicasLost"
TOPOLOGY_IN_SYNC = "TopologyInSync"
TOPOLOGY_DRIFT_DETECTED = "TopologyDriftDetected"

# KAI PodGroup: scheduling conditions
UNSCHEDULABLE_ON_NODE_POOL = "UnschedulableOnNodePool"
NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
OVER_LIMIT = "OverLimit"
PREEMPTION_DELAY_NOT_ELAPSED = "PreemptionDelayNotElapsed"
QUEUE_DOES_NOT_EXIST = "QueueDoesNotExist"

# KAI Queue: condition types
ORPHAN = "Orphan"
OVER_QUOTA = "OverQuota"

# KAI: events
EVICT = "Evict"
PIPELINED = "Pipelined"
BOUND = "Bound"
BINDING_ERROR = "BindingError"
POD_GROUPER_WARNING = "PodGrouperWarning"
POD_GROUP_NOT_FOUND = "PodGroupNotFound"

# KAI: BindRequest resource types (its phases are Pending, Succeeded and Failed above)
REGULAR = "Regular"
FRACTION = "Fraction"

# KAI: conditions of Config and SchedulingShard
RECONCILING = "Reconciling"
DEPLOYED = "Deployed"
AVAILABLE = "Available"
DEPENDENCIES_FULFILLED = "DependenciesFulfilled"
