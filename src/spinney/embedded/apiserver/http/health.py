"""Health probes with the check names of kube-apiserver, and the page of metrics."""

from __future__ import annotations

from prometheus_client import REGISTRY
from prometheus_client.exposition import generate_latest

from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Store
from spinney.kube.client.transport import Request, Response

ROOTS = ("/healthz", "/livez", "/readyz")
_CHECKS = (
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/crd-informer-synced",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/bootstrap-controller",
    "autoregister-completion",
)
_READY_ONLY = ("etcd-readiness", "informer-sync", "shutdown")
_TEXT = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-cache, private"}


def paths() -> list[str]:
    """Everything that can be probed."""
    return [path for root in ROOTS for path in (root, *(f"{root}/{check}" for check in _checks(root)))]


def _checks(root: str) -> tuple[str, ...]:
    return (*_CHECKS, *_READY_ONLY) if root == "/readyz" else _CHECKS


def answer(path: str, request: Request) -> Response | None:
    """Answer a probe, or return None for another path."""
    root = next((root for root in ROOTS if path == root or path.startswith(f"{root}/")), None)
    if root is None:
        return None
    if path != root:
        is_known = path.removeprefix(f"{root}/") in _checks(root)
        return Response(200, b"ok", _TEXT) if is_known else None
    if not any(name == "verbose" for name, _ in request.query):
        return Response(200, b"ok", _TEXT)
    return Response(200, _described(root, [value for name, value in request.query if name == "exclude"]), _TEXT)


def _described(root: str, excluded: list[str]) -> bytes:
    checks = _checks(root)
    lines = [f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks]
    if unknown := [f'"{check}"' for check in excluded if check not in checks]:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {','.join(unknown)}")
    return "\n".join([*lines, f"{root.strip('/')} check passed", ""]).encode()


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
