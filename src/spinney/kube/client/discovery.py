"""Discovery: which kinds an API server serves, requested when needed and cached."""

from __future__ import annotations

import msgspec

from spinney.api.meta import Resource, Struct
from spinney.kube.client.client import Client
from spinney.kube.errors import NotFound


class _Served(Struct, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _ServedList(Struct, frozen=True):
    resources: tuple[_Served, ...] = ()


class Discovery:
    """Finds the resource of a kind. A missing kind is requested again, since its CRD may come later."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cached: dict[str, dict[str, Resource]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind; None if it is not served."""
        return (await self._kinds(api_version, kind)).get(kind)

    async def serves(self, api_version: str) -> bool:
        """Whether a group version is served at all."""
        return bool(await self._kinds(api_version, ""))

    async def _kinds(self, api_version: str, wanted: str) -> dict[str, Resource]:
        cached = self._cached.get(api_version)
        if cached and (not wanted or wanted in cached):
            return cached
        root = "/apis" if "/" in api_version else "/api"
        try:
            response = await self._client.call("GET", f"{root}/{api_version}")
        except NotFound:
            self._cached.pop(api_version, None)
            return {}
        served = msgspec.json.decode(response.body, type=_ServedList)
        # The list also has subresources, such as "pods/status"; they share the kind of something else.
        kinds = {
            item.kind: Resource(api_version, item.kind, item.name, item.namespaced)
            for item in served.resources
            if "/" not in item.name
        }
        self._cached[api_version] = kinds
        return kinds
