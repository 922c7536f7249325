"""Parts of GPUs, which pods ask for by annotations: whether they do, and what is wrong with it."""

from __future__ import annotations

import re
from fractions import Fraction

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.quantity import QuantityError, exact
from spinney.api.raw_pods import annotations_of, containers, requests_of

_POSITIVE = re.compile(r"[1-9]\d*")


def shares_gpu(pod: Json) -> bool:
    """Whether a pod requests a fraction or memory of a GPU."""
    annotations = annotations_of(pod)
    return labels.GPU_FRACTION in annotations or labels.GPU_MEMORY in annotations


def share_problems(pod: Json) -> list[str]:
    """What is wrong with a pod's request for a part of a GPU."""
    annotations = annotations_of(pod)
    fraction, memory = annotations.get(labels.GPU_FRACTION), annotations.get(labels.GPU_MEMORY)
    devices = annotations.get(labels.GPU_FRACTION_DEVICES)
    errors: list[str] = []
    if fraction is None and memory is None:
        if devices is not None:
            errors.append(
                f"annotation {labels.GPU_FRACTION_DEVICES} needs {labels.GPU_FRACTION} or {labels.GPU_MEMORY} beside it"
            )
        if annotations.get(labels.MPS) == "true":
            errors.append(f"annotation {labels.MPS} is for pods that ask for a part of a GPU")
        return errors
    if fraction is not None and memory is not None:
        errors.append(f"annotations {labels.GPU_FRACTION} and {labels.GPU_MEMORY} exclude each other")
    if any(requests_of(container).get(labels.GPU_RESOURCE) not in (None, 0, "0") for container in containers(pod)):
        errors.append(f"a part of a GPU and a whole {labels.GPU_RESOURCE} cannot be asked for by one pod")
    if fraction is not None and not _is_fraction(fraction):
        errors.append(f"annotation {labels.GPU_FRACTION} is {fraction!r}; it must be a number above 0 and below 1")
    if memory is not None and not _POSITIVE.fullmatch(memory):
        errors.append(f"annotation {labels.GPU_MEMORY} is {memory!r}; it must be a whole number of MiB above 0")
    if devices is not None and not _POSITIVE.fullmatch(devices):
        errors.append(f"annotation {labels.GPU_FRACTION_DEVICES} is {devices!r}; it must be a whole number above 0")
    if containers(pod) and shared_container(pod) is None:
        wanted = annotations[labels.GPU_FRACTION_CONTAINER]
        errors.append(
            f"annotation {labels.GPU_FRACTION_CONTAINER} names {wanted!r}, which is not a container of the pod"
        )
    return errors


def shared_container(pod: Json) -> tuple[Json, str] | None:
    """The container that uses the shared GPU, and its index: `0`, or `i0` for an init container."""
    wanted = annotations_of(pod).get(labels.GPU_FRACTION_CONTAINER)
    spec = pod.get("spec") or {}
    if wanted is None:
        first = (spec.get("containers") or [None])[0]
        return (first, "0") if first else None
    for prefix, field in (("i", "initContainers"), ("", "containers")):
        for index, container in enumerate(spec.get(field) or []):
            if container.get("name") == wanted:
                return container, f"{prefix}{index}"
    return None


def _is_fraction(text: str) -> bool:
    try:
        # What is too small for any quantity is rounded up to a billionth, and stands for nothing.
        return Fraction(1, 10**9) < exact(text) < 1
    except QuantityError:
        return False
