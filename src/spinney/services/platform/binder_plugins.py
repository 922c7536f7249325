"""What Config says about the binder's plugins, and what the cluster says where Config is silent."""

from __future__ import annotations

import re

import msgspec

from spinney.api.kaiconfig import Binder
from spinney.api.meta import Json
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.errors import ApiError

GPU_SHARING, VOLUMES, CLAIMS = "gpusharing", "volumebinding", "dynamicresources"
# Tells containers how much GPU memory is theirs, for an enforcer of that name; off unless switched on.
HAMI = "hamicore"
_CLUSTER_POLICY = ("nvidia.com/v1", "ClusterPolicy")
# From this release of NVIDIA's operator on, an interface that is on is the default one.
_ALWAYS_DEFAULT = (25, 10, 0)


def is_on(binder: Binder, plugin: str, default: bool = True) -> bool:
    """Whether a plugin takes part."""
    block = binder.plugins.get(plugin)
    if block is None:
        return default
    return block.enabled is not False


def argument(binder: Binder, plugin: str, name: str) -> str:
    """What Config tells a plugin; empty where it says nothing."""
    block = binder.plugins.get(plugin)
    return block.arguments.get(name, "") if block is not None else ""


def seconds_argument(binder: Binder, plugin: str, name: str) -> float | None:
    """A number of seconds that Config tells a plugin."""
    text = argument(binder, plugin, name)
    try:
        return float(text) if text else None
    except ValueError:
        where = f"binder.plugins.{plugin}.arguments.{name}"
        raise ValueError(f"{where} is {text!r}; it must be a number of seconds") from None


def cdi_from_config(binder: Binder) -> bool | None:
    """Whether devices are named in the way of the container device interface; None where Config leaves it open."""
    if text := argument(binder, GPU_SHARING, "cdiEnabled"):
        return text.lower() == "true"
    return binder.cdi_enabled


async def cdi_from_cluster(client: Client, discovery: Discovery) -> bool:
    """The same, as NVIDIA's operator has been told."""
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
    """Whether a ClusterPolicy makes the interface the way to devices."""
    cdi = (policy.get("spec") or {}).get("cdi") or {}
    release = ((policy["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "")).lstrip("v")
    numbers = tuple(int(part) for part in re.findall(r"\d+", release)[:3])
    return bool(cdi.get("enabled")) and (numbers >= _ALWAYS_DEFAULT or bool(cdi.get("default")))
