"""The difference between a registered webhook configuration and what its component serves: pure."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.kube.difference import covers

# On configurations that a component created itself, and so keeps current as a whole.
_CREATED_BY_US = "spinney.dev/registered-by-component"


def with_mark(wanted: Json) -> Json:
    """The configuration as a component creates it where nobody applied manifests."""
    metadata = wanted["metadata"]
    return {**wanted, "metadata": {**metadata, "annotations": {_CREATED_BY_US: "true"}}}


def plan_registration(wanted: Json, live: Json) -> list[Json]:
    """A JSON patch; empty if the live configuration reaches us and trusts us.

    Of what an administrator applied only CA bundles are ours, so that applying it again meets no conflict. Where it
    leads elsewhere, by Service instead of by URL or the reverse, all of it is replaced.
    """
    hooks = wanted["webhooks"]
    current = {hook["name"]: hook for hook in live.get("webhooks") or ()}
    ours = _CREATED_BY_US in (live["metadata"].get("annotations") or {})
    if not all(hook["name"] in current and _leads_here(hook, current[hook["name"]]) for hook in hooks) or (
        ours and not covers(live, wanted)
    ):
        return [_unchanged(live), {"op": "add", "path": "/webhooks", "value": hooks}]
    bundles = {hook["name"]: hook["clientConfig"]["caBundle"] for hook in hooks}
    changes = [
        {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": bundles[hook["name"]]}
        for at, hook in enumerate(live["webhooks"])
        if hook["name"] in bundles and hook["clientConfig"].get("caBundle") != bundles[hook["name"]]
    ]
    return [_unchanged(live), *changes] if changes else []


def _leads_here(wanted: Json, live: Json) -> bool:
    ours = {key: value for key, value in wanted["clientConfig"].items() if key != "caBundle"}
    others = {"url", "service"} - set(ours)
    return covers(live["clientConfig"], ours) and not any(live["clientConfig"].get(key) for key in others)


def _unchanged(live: Json) -> Json:
    """Without this, a list that changed meanwhile would be patched at the wrong place."""
    return {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
