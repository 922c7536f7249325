"""Health probes: `/healthz`, `/livez` and `/readyz` with the check names of kube-apiserver."""

from __future__ import annotations

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
