"""resource.k8s.io: devices, claims and allocations (dynamic resource allocation)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from spinney.api.affinity import NodeSelector, Taint
from spinney.api.meta import Condition, Json, Object, ObjectMeta, Resource, Struct
from spinney.api.quantity import Quantity, ResourceList
from spinney.api.schema import ATOMIC, REQUIRED, Int64, default

VERSION = "resource.k8s.io/v1"


class CelSelector(Struct, frozen=True):
    """A CEL expression over a device."""

    expression: Annotated[str, REQUIRED] = ""


class DeviceSelector(Struct, frozen=True):
    """A selector of devices."""

    cel: CelSelector | None = None


class CapacityRequest(Struct, frozen=True):
    """The requested part of a divisible device."""

    requests: ResourceList = {}


class DeviceToleration(Struct, frozen=True):
    """Lets a claim use a device that has a taint."""

    key: str = ""
    operator: Annotated[str, default("Equal")] = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ExactDeviceRequest(Struct, frozen=True):
    """Devices of one class."""

    device_class_name: Annotated[str, REQUIRED] = ""
    selectors: Annotated[tuple[DeviceSelector, ...], ATOMIC] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool = False
    capacity: CapacityRequest | None = None
    tolerations: Annotated[tuple[DeviceToleration, ...], ATOMIC] = ()


class DeviceSubRequest(Struct, frozen=True):
    """One of several alternatives, in order of preference."""

    name: Annotated[str, REQUIRED] = ""
    device_class_name: Annotated[str, REQUIRED] = ""
    selectors: Annotated[tuple[DeviceSelector, ...], ATOMIC] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    capacity: CapacityRequest | None = None
    tolerations: Annotated[tuple[DeviceToleration, ...], ATOMIC] = ()


class DeviceRequest(Struct, frozen=True):
    """One request of a claim: exactly this, or the first available of several."""

    name: Annotated[str, REQUIRED] = ""
    exactly: ExactDeviceRequest | None = None
    first_available: Annotated[tuple[DeviceSubRequest, ...], ATOMIC] = ()


class DeviceConstraint(Struct, frozen=True):
    """What the devices of several requests must have in common, or not."""

    requests: Annotated[tuple[str, ...], ATOMIC] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class OpaqueConfiguration(Struct, frozen=True):
    """Parameters that only a driver understands."""

    driver: Annotated[str, REQUIRED] = ""
    parameters: Annotated[Json, REQUIRED] = {}


class DeviceClaimConfiguration(Struct, frozen=True):
    """Driver parameters for some requests of a claim."""

    requests: Annotated[tuple[str, ...], ATOMIC] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Struct, frozen=True):
    """The devices that a claim requests."""

    requests: Annotated[tuple[DeviceRequest, ...], ATOMIC] = ()
    constraints: Annotated[tuple[DeviceConstraint, ...], ATOMIC] = ()
    config: Annotated[tuple[DeviceClaimConfiguration, ...], ATOMIC] = ()


class ResourceClaimSpec(Struct, frozen=True):
    """The spec of a claim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Struct, frozen=True):
    """A device allocated to a request."""

    request: Annotated[str, REQUIRED] = ""
    driver: Annotated[str, REQUIRED] = ""
    pool: Annotated[str, REQUIRED] = ""
    device: Annotated[str, REQUIRED] = ""
    admin_access: bool = False
    tolerations: Annotated[tuple[DeviceToleration, ...], ATOMIC] = ()
    binding_conditions: Annotated[tuple[str, ...], ATOMIC] = ()
    binding_failure_conditions: Annotated[tuple[str, ...], ATOMIC] = ()
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: ResourceList = {}


class AllocatedConfiguration(Struct, frozen=True):
    """Driver parameters that go with an allocation."""

    source: Annotated[str, REQUIRED] = ""
    requests: Annotated[tuple[str, ...], ATOMIC] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocation(Struct, frozen=True):
    """The devices of an allocation."""

    results: Annotated[tuple[AllocatedDevice, ...], ATOMIC] = ()
    config: Annotated[tuple[AllocatedConfiguration, ...], ATOMIC] = ()


class AllocationResult(Struct, frozen=True):
    """The allocation of a claim, and the nodes that can use it."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ClaimConsumer(Struct, frozen=True):
    """A consumer of an allocated claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceStatus(Struct, frozen=True):
    """The status of an allocated device, from its driver."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Struct, frozen=True):
    """The allocation of a claim, and its consumers."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()


class ResourceClaim(Object, frozen=True):
    """A request for devices."""

    resource: ClassVar[Resource] = Resource(VERSION, "ResourceClaim", "resourceclaims")

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True):
    """The template of claims."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ResourceClaimSpec, REQUIRED] = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True):
    """Makes a claim for each pod that names it."""

    resource: ClassVar[Resource] = Resource(VERSION, "ResourceClaimTemplate", "resourceclaimtemplates")

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Struct, frozen=True):
    """Which devices belong to a class, and the extended resource it also serves."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[Json, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Object, frozen=True):
    """A kind of device."""

    resource: ClassVar[Resource] = Resource(VERSION, "DeviceClass", "deviceclasses", namespaced=False)

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Struct, frozen=True):
    """A property of a device, of one of four types."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class DeviceCapacity(Struct, frozen=True):
    """A capacity of a device, and how it may be divided."""

    value: Quantity = "0"
    request_policy: Json | None = None


class CounterValue(Struct, frozen=True):
    """How much of a shared counter there is, or is used."""

    value: Quantity = "0"


class CounterSet(Struct, frozen=True):
    """Counters that devices of a pool draw on."""

    name: str = ""
    counters: dict[str, CounterValue] = {}


class CounterConsumption(Struct, frozen=True):
    """What a device draws from a counter set."""

    counter_set: str = ""
    counters: dict[str, CounterValue] = {}


class Device(Struct, frozen=True):
    """A device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Struct, frozen=True):
    """The pool that a slice is a part of; only a complete, newest generation counts."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct, frozen=True):
    """Devices of a driver, and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True):
    """Devices that a driver offers."""

    resource: ClassVar[Resource] = Resource(VERSION, "ResourceSlice", "resourceslices", namespaced=False)

    spec: ResourceSliceSpec = ResourceSliceSpec()
