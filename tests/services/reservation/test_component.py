"""The process inside a reservation pod."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api import labels
from spinney.api.core import Pod
from spinney.services.reservation.component import (
    COMPONENT,
    NoGpu,
    ReservationComponentSettings,
    gpu_by_nvml,
    gpu_of_container,
)
from tests import make
from tests.services.stage import stage
from tests.virtual_time import virtual


@virtual
async def test_a_reservation_pod_tells_its_gpu_once() -> None:
    """The pod is annotated with a GPU's UUID; a second start changes nothing."""
    pod = make.pod("holder").build()
    settings = ReservationComponentSettings(pod="holder", namespace="default", source="simulated")
    gpus = []
    async with stage((COMPONENT, settings), before=[(Pod.resource, pod, "default")]) as held:
        for _ in range(2):
            holder = await held.client.get(Pod, ("default", "holder"))
            gpus.append(holder.metadata.annotations[labels.RESERVED_GPU])
            await asyncio.sleep(1)
    assert gpus[0].startswith("GPU-")
    assert gpus[0] == gpus[1]


def test_without_a_driver_nothing_is_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without NVML is an error that says so, not a made-up GPU."""
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(NoGpu, match="nvidia-ml-py is not installed"):
        gpu_by_nvml()


def test_fake_gpu_is_the_one_that_the_kubelet_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    """On nodes with our fake GPUs the container's own is told; two of them are one too many."""
    monkeypatch.setenv(labels.ENV_FAKE_GPUS, "GPU-1")
    assert gpu_of_container() == "GPU-1"
    monkeypatch.setenv(labels.ENV_FAKE_GPUS, "GPU-1,GPU-2")
    with pytest.raises(NoGpu, match="holds one GPU"):
        gpu_of_container()
