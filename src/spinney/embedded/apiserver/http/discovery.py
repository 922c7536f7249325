"""Discovery: which groups, versions and resources are served, in the aggregated and in the older form."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.errors import method_not_allowed, not_served
from spinney.embedded.apiserver.http import content_types, health
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.kube.client.transport import Request, Response

VERSION: Json = {
    "major": "1",
    "minor": "35",
    "emulationMajor": "1",
    "emulationMinor": "35",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "34",
    "gitVersion": "v1.35.4+spinney",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "python",
    "compiler": "cpython",
    "platform": "linux/amd64",
}
_ADDRESSES = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def _wants_aggregated(accept: str) -> bool:
    """Whether the client accepts aggregated discovery, at the served version."""
    forms = ({part.strip() for part in form.split(";")} for form in accept.split(","))
    return any({"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"} <= form for form in forms)


def _check_method(request: Request) -> None:
    if request.method != "GET":
        raise method_not_allowed()


def _is_of_groups(path: str) -> bool:
    """Whether a path lists all groups, or one group."""
    return path.startswith("/apis") and path.count("/") < 3


class Discovery:
    """Answers the paths above the resources; documents are cached until the served kinds change."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._documents: dict[str, bytes] = {}
        self._revision = -1

    def answer(self, request: Request) -> Response | None:
        """Answer a discovery request, or return None for another path."""
        path = request.path.rstrip("/") or "/"
        if path in ("/", "/index.html"):
            return Response(200, self._cached("/", self._root), JSON)
        probed = health.answer(path, request)
        if probed is not None:
            return probed
        accept = request.headers.get("accept", "")
        if path == "/version":
            _check_method(request)
            content_types.check_acceptable(accept, "application/json")
            return Response(200, encode(VERSION), JSON)
        if path in ("/api", "/apis") and _wants_aggregated(accept):
            body = self._cached(f"{path}#aggregated", self._aggregated, path)
            return Response(200, body, {**JSON, "content-type": _AGGREGATED})
        response = self._plain(path)
        if response is not None:
            # Kubernetes serves groups by its aggregator, which checks less.
            if _is_of_groups(path):
                content_types.check_content_type(accept)
            else:
                _check_method(request)
            content_types.check_plain_form(accept)
        return response

    def _plain(self, path: str) -> Response | None:
        """The older form of discovery."""
        if path == "/api":
            return Response(
                200,
                encode({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": _ADDRESSES}),
                JSON,
            )
        if path == "/apis":
            return Response(200, self._cached(path, self._groups), JSON)
        return self._below(path)

    def _cached(self, name: str, make: Any, *arguments: str) -> bytes:
        if self._revision != self._kinds.revision:
            self._documents, self._revision = {}, self._kinds.revision
        if name not in self._documents:
            self._documents[name] = encode(make(*arguments))
        return self._documents[name]

    def _below(self, path: str) -> Response | None:
        parts = path.strip("/").split("/")
        groups = self._kinds.groups()
        if parts[0] == "api" and len(parts) == 2:
            group, version = "", parts[1]
        elif parts[0] == "apis" and len(parts) == 2:
            if parts[1] not in groups or not parts[1]:
                return None
            return Response(
                200, encode({**_group(parts[1], list(groups[parts[1]])), "kind": "APIGroup", "apiVersion": "v1"}), JSON
            )
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1], parts[2]
        else:
            return None
        if group not in groups:
            return None
        if version not in groups[group]:
            raise not_served()
        return Response(200, self._cached(path, self._resources, group, version), JSON)

    def _root(self) -> Json:
        paths = ["/api", "/api/v1", "/apis", "/apis/", "/metrics", "/version"]
        paths += ["/openapi/v2", "/openapi/v3", "/openapi/v3/"]
        for group, versions in self._kinds.groups().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return {"paths": sorted([*paths, *health.paths()])}

    def _groups(self) -> Json:
        groups = [_group(name, list(versions)) for name, versions in self._kinds.groups().items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _resources(self, group: str, version: str) -> Json:
        resources: list[Json] = []
        for kind in self._kinds.groups()[group][version]:
            resources.append(_resource(kind))
            for sub in kind.subresources.values():
                entry: Json = {
                    "name": f"{kind.plural}/{sub.name}",
                    "singularName": "",
                    "namespaced": kind.namespaced,
                    "kind": sub.kind,
                    "verbs": list(sub.verbs),
                }
                if (sub.group, sub.version) != (kind.group, kind.version):
                    entry |= {"group": sub.group, "version": sub.version}
                resources.append(entry)
        name = f"{group}/{version}" if group else version
        # The core group is older than the version of its own list.
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
        return {**head, "groupVersion": name, "resources": resources}

    def _aggregated(self, path: str) -> Json:
        wanted = {name: versions for name, versions in self._kinds.groups().items() if bool(name) == (path == "/apis")}
        items = [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {"version": served, "resources": [_discovered(kind) for kind in kinds], "freshness": "Current"}
                    for served, kinds in versions.items()
                ],
            }
            for name, versions in wanted.items()
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }


def _group(name: str, versions: list[str]) -> Json:
    served = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": served, "preferredVersion": served[0]}


def _resource(kind: Kind) -> Json:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        entry["shortNames"] = list(kind.short)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if "create" in kind.verbs and "list" in kind.verbs:
        entry["storageVersionHash"] = _storage_hash(kind)
    return entry


def _storage_hash(kind: Kind) -> str:
    """The hash that tells clients when the storage version changes."""
    version = kind.resource.storage_version or kind.stored.rpartition("/")[2]
    kept = f"{kind.table.rpartition('/')[0]}/{version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(kept.encode()).digest()[:8]).decode()


def _response_kind(kind: Kind, group: str, version: str, name: str) -> Json:
    """The kind of a response; built-in kinds leave out a group and version equal to the list's."""
    if kind.custom is None and (group, version) == (kind.group, kind.version):
        group, version = "", ""
    return {"group": group, "version": version, "kind": name}


def _discovered(kind: Kind) -> Json:
    entry: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        entry["shortNames"] = list(kind.short)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(kind, sub.group, sub.version, sub.kind),
                "verbs": list(sub.verbs),
            }
            for sub in kind.subresources.values()
        ]
    return entry
