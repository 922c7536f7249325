"""The `/metrics` page of the API server: stored objects of each kind, its build, and what else runs in its process."""

from __future__ import annotations

from prometheus_client import REGISTRY
from prometheus_client.exposition import generate_latest

from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Store
from spinney.kube.client.transport import Response

_FORM = {"content-type": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"}
_OBJECTS = "Number of stored objects at the time of last check split by kind."


def page(store: Store, kinds: Kinds, version: dict[str, str]) -> Response:
    """The page that Prometheus reads."""
    counts = {kind.table: len(store.table(kind.table).items) for kind in kinds if "list" in kind.verbs}
    objects = [
        f'apiserver_resource_objects{{group="{group}",resource="{plural}"}} {count}'
        for (group, _, plural), count in sorted((table.rpartition("/"), count) for table, count in counts.items())
    ]
    build = ",".join(f'{key}="{version[key]}"' for key in ("gitVersion", "major", "minor", "platform"))
    lines = [
        f"# HELP apiserver_resource_objects [ALPHA] {_OBJECTS}",
        "# TYPE apiserver_resource_objects gauge",
        *objects,
        "# HELP kubernetes_build_info [ALPHA] The build that runs, as labels of a constant 1.",
        "# TYPE kubernetes_build_info gauge",
        f"kubernetes_build_info{{{build.replace('gitVersion', 'git_version')}}} 1",
    ]
    # On a laptop all components run in this process, and nothing else serves their metrics.
    return Response(200, "\n".join([*lines, ""]).encode() + generate_latest(REGISTRY), _FORM)
