"""The two ConfigMaps with the devices and the portion of a pod that shares a GPU."""

from __future__ import annotations

from contextlib import suppress

from spinney.api import labels, reasons
from spinney.api.core import ConfigMap, Container, Node, Pod
from spinney.api.meta import Json, Key
from spinney.api.numbers import whole_number
from spinney.api.owners import controller_reference
from spinney.api.quantity import QuantityError, exact
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.services.binder.bind import Bind, BindError


def shared_container(pod: Pod) -> tuple[Container, str]:
    """The container that uses the shared GPU, and its index in ConfigMap names: `0`, or `i0` for init."""
    wanted = pod.metadata.annotations.get(labels.GPU_FRACTION_CONTAINER)
    if wanted is None:
        return pod.spec.containers[0], "0"
    for prefix, containers in (("i", pod.spec.init_containers), ("", pod.spec.containers)):
        for index, container in enumerate(containers):
            if container.name == wanted:
                return container, f"{prefix}{index}"
    raise BindError(f"annotation {labels.GPU_FRACTION_CONTAINER} names {wanted!r}, which is not a container of the pod")


def memory_of(node: Node, portion: str) -> int:
    """A portion of a GPU's memory in MiB; 0 where the node has no label with the size."""
    whole = whole_number(node.metadata.labels.get(labels.NODE_GPU_MEMORY, ""))
    try:
        return int(whole * exact(portion)) if whole and portion else 0
    except QuantityError:
        return 0


class SharingConfig:
    """Writes the ConfigMaps that the container refers to."""

    def __init__(self, client: Client, cdi: bool, memory_limit: bool) -> None:
        self._client = client
        self._memory_limit = memory_limit
        self._device_prefix = "k8s.device-plugin.nvidia.com/gpu=" if cdi else ""

    def concerns(self, bind: Bind) -> bool:
        """Binds of pods that share a GPU."""
        return bind.request.spec.received_resource_type == reasons.FRACTION

    async def do(self, bind: Bind) -> None:
        """Create or update both ConfigMaps."""
        for name, data in self._maps(bind).items():
            await self._write(bind.pod, name, data)

    async def undo(self, bind: Bind) -> None:
        """Delete both ConfigMaps."""
        for name in self._maps(bind):
            with suppress(NotFound):
                if await self._is_of_a_pod((bind.pod.namespace, name)):
                    await self._client.delete(ConfigMap, (bind.pod.namespace, name))

    def _maps(self, bind: Bind) -> dict[str, dict[str, str]]:
        prefix = bind.pod.metadata.annotations.get(labels.SHARED_GPU_CONFIGMAP)
        if not prefix:
            raise BindError(f"the pod has no annotation {labels.SHARED_GPU_CONFIGMAP}: was it created past admission?")
        container, place = shared_container(bind.pod)
        portion = bind.request.spec.received_gpu.portion if bind.request.spec.received_gpu else ""
        devices = ",".join(f"{self._device_prefix}{device}" for device in bind.devices)
        capabilities = {labels.ENV_GPU_PORTION: portion, labels.ENV_NUM_GPUS: portion}
        if self._memory_limit and (most := memory_of(bind.node, portion)):
            capabilities[labels.ENV_DEVICE_MEMORY_LIMIT] = f"{most}m"
        environment: dict[str, str] = {}
        refers = any(variable.name == labels.ENV_VISIBLE_DEVICES for variable in container.env)
        (capabilities if refers else environment)[labels.ENV_VISIBLE_DEVICES] = devices
        return {f"{prefix}-{place}": capabilities, f"{prefix}-{place}-evar": environment}

    async def _write(self, pod: Pod, name: str, data: dict[str, str]) -> None:
        body: Json = {"metadata": {"name": name, "ownerReferences": [controller_reference(pod)]}, "data": data}
        try:
            await self._client.create(ConfigMap, body, pod.namespace)
        except AlreadyExists:
            if not await self._is_of_a_pod((pod.namespace, name)):
                raise BindError(
                    f"ConfigMap {name} belongs to no pod: let annotation {labels.SHARED_GPU_CONFIGMAP} name another one"
                ) from None
            await self._client.patch(ConfigMap, (pod.namespace, name), {"data": data})

    async def _is_of_a_pod(self, key: Key) -> bool:
        """Whether a pod owns a ConfigMap: a pod may name any, also one that its creator may not write."""
        metadata = await self._client.metadata(ConfigMap, key)
        return metadata is not None and any(owner.kind == "Pod" for owner in metadata.owner_references)
