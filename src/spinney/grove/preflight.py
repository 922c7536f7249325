"""Checks before the operator starts."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Resource
from spinney.api.nvidia import ComputeDomain
from spinney.backends.served import discover
from spinney.grove.settings import Settings
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError, CannotStart

_WHO_AM_I = Resource("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)


# Upstream's exit code for missing MNNVL prerequisites.
_NO_COMPUTE_DOMAINS = 7


async def preflight(client: Client, settings: Settings) -> None:
    """Require that ComputeDomains are served where MNNVL is enabled."""
    if not settings.mnnvl:
        return
    served = await discover(client, [ComputeDomain.resource])
    if not served.has(ComputeDomain.resource):
        raise CannotStart(
            "network.autoMNNVLEnabled is set, but the cluster serves no ComputeDomain (resource.nvidia.com/v1beta1): "
            "install the NVIDIA DRA driver or switch MNNVL off",
            _NO_COMPUTE_DOMAINS,
        )


async def with_own_name(client: Client, settings: Settings) -> Settings:
    """The settings with the operator's own user name, which the authorizer must allow."""
    if settings.user or not settings.config.authorizer.enabled:
        return settings
    try:
        answer = await client.create(_WHO_AM_I, {})
    except ApiError:
        return settings
    return replace(settings, user=answer["status"]["userInfo"]["username"])
