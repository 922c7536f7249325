"""Volcano: pod groups, queues and hyper nodes, as releases from 1.14 on serve them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from spinney.api.meta import Condition, Json, Object, Resource, Struct
from spinney.api.quantity import ResourceList
from spinney.api.schema import AGE, ATOMIC, REQUIRED, Column, Definition, Int32, Int64, default, enum, rule, schema
from spinney.api.selector import LabelSelector

_DNS = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_COUNT = schema(minimum=0)
_NAME = schema(maxLength=253)


class NetworkTopology(Struct, frozen=True):
    """The highest tier of hyper nodes that pods may be spread over."""

    mode: Annotated[str, enum("hard", "soft"), default("hard")] = "hard"
    highest_tier_allowed: Annotated[int | None, _COUNT] = None
    highest_tier_name: Annotated[str, _NAME] = ""


class SubGroupPolicy(Struct, frozen=True):
    """Pods of one role: how many make a subgroup, and how many subgroups are needed."""

    name: Annotated[str, _NAME] = ""
    label_selector: LabelSelector | None = None
    match_label_keys: Annotated[tuple[str, ...], ATOMIC] = ()
    sub_group_size: Annotated[Int32, schema(minimum=1), default(1)] = 1
    min_sub_groups: Annotated[Int32, _COUNT, default(0)] = 0
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Struct, frozen=True):
    """The spec of a gang."""

    min_member: Annotated[Int32, _COUNT] = 0
    min_task_member: dict[str, Int32] = {}
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()
    network_topology: NetworkTopology | None = None
    queue: Annotated[str, schema(maxLength=253, pattern=_DNS), default("default")] = "default"
    priority_class_name: Annotated[str, _NAME] = ""
    min_resources: ResourceList = {}


class PodGroupCondition(Struct, frozen=True):
    """A condition in Volcano's own shape."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Struct, frozen=True):
    """The status of a group; Volcano writes it without a subresource."""

    phase: Annotated[str, enum("Pending", "Running", "Unknown", "Inqueue", "Completed")] = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    running: Annotated[Int32, _COUNT] = 0
    succeeded: Annotated[Int32, _COUNT] = 0
    failed: Annotated[Int32, _COUNT] = 0


class PodGroup(Object, frozen=True):
    """A gang, as Volcano reads it."""

    resource: ClassVar[Resource] = Resource("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")
    crd: ClassVar[Definition] = Definition(
        short_names=("pg", "podgroup-v1beta1"),
        status=False,
        columns=(
            Column("STATUS", ".status.phase", "string"),
            Column("minMember", ".spec.minMember"),
            Column("RUNNINGS", ".status.running"),
            Column("AGE", ".metadata.creationTimestamp", "date"),
            Column("QUEUE", ".spec.queue", "string", wide=True),
        ),
    )

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class Guarantee(Struct, frozen=True):
    """The guaranteed resources of a queue."""

    resource: ResourceList = {}


class ExtendCluster(Struct, frozen=True):
    """Another cluster that a queue uses."""

    name: str = ""
    weight: Int32 = 0
    capacity: ResourceList = {}


class QueueSpec(Struct, frozen=True):
    """The entitlement of a queue."""

    weight: Annotated[Int32, schema(minimum=1, maximum=65535), default(1)] = 1
    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    parent: Annotated[str, schema(maxLength=253, pattern=_DNS)] = ""
    priority: Annotated[Int32, _COUNT] = 0
    type: Annotated[str, _NAME] = ""
    dequeue_strategy: Annotated[str, enum("fifo", "traverse"), default("traverse")] = "traverse"
    affinity: Json | None = None
    extend_clusters: tuple[ExtendCluster, ...] = ()


class Reservation(Struct, frozen=True):
    """Nodes that are kept for a queue."""

    nodes: tuple[str, ...] = ()
    resource: ResourceList = {}


class QueueStatus(Struct, frozen=True):
    """The state of a queue, and its allocated resources."""

    state: Annotated[str, enum("Open", "Closed", "Closing", "Unknown")] = ""
    allocated: ResourceList = {}
    pending: Annotated[Int32, _COUNT] = 0
    inqueue: Annotated[Int32, _COUNT] = 0
    running: Annotated[Int32, _COUNT] = 0
    completed: Annotated[Int32, _COUNT] = 0
    unknown: Annotated[Int32, _COUNT] = 0
    reservation: Reservation | None = None


class Queue(Object, frozen=True):
    """A share of the cluster, as Volcano reads it."""

    resource: ClassVar[Resource] = Resource("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)
    crd: ClassVar[Definition] = Definition(
        short_names=("q", "queue-v1beta1"), columns=(Column("PARENT", ".spec.parent", "string"),)
    )

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class ExactMatch(Struct, frozen=True):
    """One member by name."""

    name: Annotated[str, schema(minLength=1, maxLength=253, pattern=_DNS), REQUIRED] = ""


class RegexMatch(Struct, frozen=True):
    """Members by pattern."""

    pattern: Annotated[str, schema(minLength=1), REQUIRED] = ""


class MemberSelector(Struct, frozen=True):
    """Which nodes or hyper nodes belong to a hyper node."""

    rules: ClassVar[tuple[Json, ...]] = (
        rule(
            "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
            "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        ),
        rule(
            "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        ),
    )

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class Member(Struct, frozen=True):
    """Nodes, or hyper nodes of the tier below."""

    type: Annotated[str, enum("Node", "HyperNode"), REQUIRED] = ""
    selector: MemberSelector | None = None


class HyperNodeSpec(Struct, frozen=True):
    """A domain of the network; a lower tier is closer."""

    tier: Annotated[int, _COUNT, REQUIRED] = 0
    tier_name: Annotated[str, _NAME] = ""
    members: Annotated[tuple[Member, ...], schema(minItems=1)] = ()


class HyperNodeStatus(Struct, frozen=True):
    """The number of nodes of a domain."""

    node_count: Annotated[Int64, _COUNT] = 0
    conditions: tuple[Condition, ...] = ()


class HyperNode(Object, frozen=True):
    """A domain of the network topology."""

    resource: ClassVar[Resource] = Resource("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", namespaced=False)
    crd: ClassVar[Definition] = Definition(
        short_names=("hn",),
        columns=(
            Column("Tier", ".spec.tier", "string"),
            Column("TierName", ".spec.tierName", "string"),
            Column("NodeCount", ".status.nodeCount"),
            AGE,
        ),
    )

    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()
