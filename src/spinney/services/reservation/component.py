"""`spinney run reservation`: inside a reservation pod, annotates the pod with its GPU and holds it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import structlog

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Struct
from spinney.kube.client.credentials import ConfigError
from spinney.kube.runtime import Component, Rule, Runtime

_log = structlog.get_logger("spinney.reservation")


class ReservationComponentSettings(Struct, frozen=True):
    """The pod, and the source of its GPU's UUID."""

    # Default: POD_NAME and POD_NAMESPACE of the environment.
    pod: str = ""
    namespace: str = ""
    # `nvml` asks the driver; `simulated` derives a UUID from the pod's, for nodes without GPUs.
    source: str = "nvml"


class NoGpu(ConfigError):
    """The pod does not see exactly one GPU."""


def gpu_by_nvml() -> str:
    """The UUID of the pod's GPU, by NVML."""
    try:
        nvml: Any = import_module("pynvml")
    except ImportError:
        why = "the Python package nvidia-ml-py is not installed: run `pip install spinney[nvidia]`"
        raise NoGpu(why) from None
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
        if count != 1:
            raise NoGpu(f"a reservation pod holds one GPU; this one sees {count}")
        uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(0))
    except nvml.NVMLError as error:
        raise NoGpu(f"NVML: {error}") from error
    return uuid.decode() if isinstance(uuid, bytes) else str(uuid)


def gpu_by_name(pod: Pod) -> str:
    """A UUID in NVML's form that follows from the pod's UID."""
    text = hashlib.sha256(pod.uid.encode()).hexdigest()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def gpu_of_container() -> str:
    """The UUID of the pod's GPU: the one that our fake device plugin gave it, else by NVML."""
    faked = os.environ.get(labels.ENV_FAKE_GPUS, "")
    if "," in faked:
        raise NoGpu(f"a reservation pod holds one GPU; this one has {faked}")
    return faked or gpu_by_nvml()


SOURCES: dict[str, Callable[[Pod], str]] = {"nvml": lambda _: gpu_of_container(), "simulated": gpu_by_name}


async def run(runtime: Runtime, settings: ReservationComponentSettings | None = None) -> None:
    """Annotate the pod with its GPU, then run forever: the GPU is held while the pod runs."""
    settings = settings or ReservationComponentSettings()
    name = settings.pod or os.environ.get("POD_NAME", "")
    namespace = settings.namespace or os.environ.get("POD_NAMESPACE", runtime.namespace)
    if not name:
        raise NoGpu("which pod is this? Set POD_NAME and POD_NAMESPACE, as the binder does")
    if settings.source not in SOURCES:
        raise NoGpu(f"source is {settings.source!r}; it must be one of {', '.join(sorted(SOURCES))}")
    pod = await runtime.client.get(Pod, (namespace, name))
    if labels.RESERVED_GPU not in pod.metadata.annotations:
        gpu = SOURCES[settings.source](pod)
        patch = {"metadata": {"uid": pod.uid, "annotations": {labels.RESERVED_GPU: gpu}}}
        await runtime.client.patch(Pod, (namespace, name), patch)
        _log.info("gpu.held", pod=name, gpu=gpu)
    runtime.ready()
    await asyncio.Event().wait()


COMPONENT = Component(
    name="reservation",
    summary="Holds a shared GPU from inside a reservation pod, and tells which one it is.",
    run=run,
    settings=ReservationComponentSettings,
    namespace_rules=(Rule(("",), ("pods",), ("get", "patch")),),
)
