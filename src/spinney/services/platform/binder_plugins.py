"""The binder's plugins in Config, and how devices are named (CDI)."""

from __future__ import annotations

import re

import msgspec

from spinney.api.kaiconfig import Binder
from spinney.api.meta import Json
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.errors import ApiError

GPU_SHARING, VOLUMES, CLAIMS = "gpusharing", "volumebinding", "dynamicresources"
# Gives containers their GPU memory limit, which HAMi-core enforces; off by default.
HAMI = "hamicore"
_CLUSTER_POLICY = ("nvidia.com/v1", "ClusterPolicy")
# From this release of NVIDIA's operator on, an enabled CDI is the default.
_ALWAYS_DEFAULT = (25, 10, 0)


def is_on(binder: Binder, plugin: str, default: bool = True) -> bool:
    """Whether a plugin is enabled."""
    block = binder.plugins.get(plugin)
    if block is None:
        return default
    return block.enabled is not False


def argument(binder: Binder, plugin: str, name: str) -> str:
    """An argument of a plugin; empty where Config has none."""
    block = binder.plugins.get(plugin)
    return block.arguments.get(name, "") if block is not None else ""


def seconds_argument(binder: Binder, plugin: str, name: str) -> float | None:
    """An argument of a plugin as seconds."""
    text = argument(binder, plugin, name)
    try:
        return float(text) if text else None
    except ValueError:
        where = f"binder.plugins.{plugin}.arguments.{name}"
        raise ValueError(f"{where} is {text!r}; it must be a number of seconds") from None


def cdi_from_config(binder: Binder) -> bool | None:
    """Whether Config names devices by the container device interface; None where it does not say."""
    if text := argument(binder, GPU_SHARING, "cdiEnabled"):
        return text.lower() == "true"
    return binder.cdi_enabled


async def cdi_from_cluster(client: Client, discovery: Discovery) -> bool:
    """Whether NVIDIA's operator uses the container device interface."""
    resource = await discovery.resource(*_CLUSTER_POLICY)
    if resource is None:
        return False
    try:
        response = await client.call("GET", resource.path())
    except ApiError:
        return False
    policies: list[Json] = msgspec.json.decode(response.body).get("items") or []
    return bool(policies) and policy_enables_cdi(policies[0])


def policy_enables_cdi(policy: Json) -> bool:
    """Whether a ClusterPolicy enables the container device interface."""
    cdi = (policy.get("spec") or {}).get("cdi") or {}
    release = ((policy["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "")).lstrip("v")
    numbers = tuple(int(part) for part in re.findall(r"\d+", release)[:3])
    return bool(cdi.get("enabled")) and (numbers >= _ALWAYS_DEFAULT or bool(cdi.get("default")))
