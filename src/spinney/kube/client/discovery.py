"""Which kinds an API server serves, asked for when needed and remembered."""

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
    """Finds the resource that serves a kind. What is missing is asked for again: a CRD may come later."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, Resource]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Where a kind is served, or None where it is not."""
        return (await self._kinds(api_version, kind)).get(kind)

    async def serves(self, api_version: str) -> bool:
        """Whether a group version is served at all."""
        return bool(await self._kinds(api_version, ""))

    async def _kinds(self, api_version: str, wanted: str) -> dict[str, Resource]:
        known = self._known.get(api_version)
        if known and (not wanted or wanted in known):
            return known
        root = "/apis" if "/" in api_version else "/api"
        try:
            response = await self._client.call("GET", f"{root}/{api_version}")
        except NotFound:
            self._known.pop(api_version, None)
            return {}
        served = msgspec.json.decode(response.body, type=_ServedList)
        # Subresources stand in the same list under "pods/status"; they share the kind of something else.
        found = {
            item.kind: Resource(api_version, item.kind, item.name, item.namespaced)
            for item in served.resources
            if "/" not in item.name
        }
        self._known[api_version] = found
        return found
