"""The pods of a service, the services of a pod, and what endpoints show of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from spinney.api.conditions import find
from spinney.api.core import Pod, Service, ServicePort
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_finished, is_ready
from spinney.api.times import rfc3339
from spinney.kube.caches.cache import Change
from spinney.kube.runtime import Runtime

HEADLESS = "service.kubernetes.io/headless"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


class ServicePods:
    """Finds pods by service and services by pod, with an index per set of selector keys."""

    def __init__(self, runtime: Runtime) -> None:
        self.services = runtime.caches.of(Service)
        self.pods = runtime.caches.of(Pod)
        self._shapes: dict[tuple[str, ...], None] = {}
        self.services.index("selector", lambda service: (_selected(service),) if service.selects else ())
        self.services.on_change(self._add_index)

    def of(self, service: Service) -> list[Pod]:
        """The pods that a service selects."""
        return self.pods.by(_index(_shape(service)), _selected(service))

    def keys(self, change: Change[Pod]) -> Iterator[Key]:
        """The services that select a pod, before and after a change."""
        for pod in (change.old, change.new):
            if pod is not None:
                for shape in self._shapes:
                    for value in _values(pod, shape):
                        yield from (service.key for service in self.services.by("selector", value))

    def _add_index(self, change: Change[Service]) -> None:
        if not change.object.selects:
            return
        shape = _shape(change.object)
        if shape not in self._shapes:
            self._shapes[shape] = None
            self.pods.index(_index(shape), lambda pod: _values(pod, shape))


def _shape(service: Service) -> tuple[str, ...]:
    return tuple(sorted(service.spec.selector))


def _index(shape: tuple[str, ...]) -> str:
    return f"labels {','.join(shape)}"


def _selected(service: Service) -> str:
    return _value(service.namespace, ((key, service.spec.selector[key]) for key in _shape(service)))


def _values(pod: Pod, shape: tuple[str, ...]) -> tuple[str, ...]:
    labels = pod.metadata.labels
    if any(key not in labels for key in shape):
        return ()
    return (_value(pod.namespace, ((key, labels[key]) for key in shape)),)


def _value(namespace: str, pairs: Iterable[tuple[str, str]]) -> str:
    return "/".join((namespace, *(f"{key}={value}" for key, value in pairs)))


def affects_endpoints(change: Change[Pod]) -> bool:
    """Whether a change of a pod may change endpoints; a pod without an address is in none."""
    old, new = change.old, change.new
    if old is None or new is None:
        return bool(change.object.status.pod_ip)
    return bool(old.status.pod_ip or new.status.pod_ip) and _shown(old) != _shown(new)


def _shown(pod: Pod) -> tuple[object, ...]:
    going = pod.metadata.deletion_timestamp is not None
    return (pod.status.pod_ip, is_ready(pod), is_finished(pod), going, pod.metadata.labels)


def has_address(pod: Pod) -> bool:
    """Whether a pod can be reached; it may be terminating."""
    return bool(pod.status.pod_ip) and ":" not in pod.status.pod_ip and not is_finished(pod)


def hostname(pod: Pod, service: Service) -> Json:
    """The hostname of a pod below the service."""
    named = pod.spec.hostname and pod.spec.subdomain == service.name
    return {"hostname": pod.spec.hostname} if named else {}


def target(pod: Pod) -> Json:
    """The reference to a pod."""
    return {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def ports(service: Service, pod: Pod) -> list[Json]:
    """The ports of a service as numbers on a pod; unknown port names are left out."""
    numbered: list[Json] = []
    for port in service.spec.ports:
        number = _number(port, pod)
        if number is not None:
            more = {"appProtocol": port.app_protocol} if port.app_protocol is not None else {}
            numbered.append({"name": port.name, "port": number, "protocol": port.protocol, **more})
    return numbered


def _number(port: ServicePort, pod: Pod) -> int | None:
    if isinstance(port.target_port, int):
        return port.target_port
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    for container in (*pod.spec.containers, *sidecars):
        for number in container.ports:
            if number.name == port.target_port and number.protocol == port.protocol:
                return number.container_port
    return None


class Triggers:
    """The time of the change behind a write, by which clients measure network programming latency."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[str, dict[str, datetime]]] = {}

    def since(self, service: Service, pods: list[Pod]) -> str | None:
        """The time of the earliest new change; of a new service its creation."""
        ready_times = {pod.name: moment for pod in pods if (moment := _ready_since(pod)) is not None}
        uid, seen = self._seen.get(service.key, ("", {}))
        self._seen[service.namespace, service.name] = service.uid, ready_times
        if uid != service.uid:
            return _text(service.metadata.creation_timestamp)
        fresh = (moment for name, moment in ready_times.items() if name not in seen or moment > seen[name])
        return _text(min(fresh, default=None))

    def forget(self, key: Key) -> None:
        """The service is gone."""
        self._seen.pop(key, None)


def _ready_since(pod: Pod) -> datetime | None:
    ready = find(pod.status.conditions, "Ready")
    return ready.last_transition_time if ready is not None else None


def _text(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None


def map_patch(wanted: dict[str, str], existing: dict[str, str]) -> Json:
    """The merge patch that turns one map into another."""
    changed: Json = {key: value for key, value in wanted.items() if existing.get(key) != value}
    return changed | {key: None for key in existing if key not in wanted}
