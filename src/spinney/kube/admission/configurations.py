"""The webhook configuration that is wanted where one may be registered already: pure."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.kube.desired import Wanted
from spinney.kube.difference import covers
from spinney.kube.manifests import webhook_resource

# On configurations that a component created itself, and so keeps current as a whole.
_CREATED_BY_US = "spinney.dev/registered-by-component"


def wanted_registration(served: Json, live: Json | None) -> Wanted:
    """The configuration that reaches us and trusts us.

    Of what an administrator applied only CA bundles are ours, so that applying it again meets no conflict. Where it
    leads elsewhere, by Service instead of by URL or the reverse, all of its webhooks are replaced.
    """
    metadata, hooks = served["metadata"], served["webhooks"]
    if live is None or _created_by_us(live):
        metadata = {**metadata, "annotations": {_CREATED_BY_US: "true"}}
    else:
        metadata = {"name": metadata["name"]}
        current = {hook["name"]: hook for hook in live.get("webhooks") or ()}
        if all(hook["name"] in current and _leads_here(hook, current[hook["name"]]) for hook in hooks):
            bundles = {hook["name"]: hook["clientConfig"]["caBundle"] for hook in hooks}
            hooks = [_trusting(hook, bundles.get(hook["name"])) for hook in live["webhooks"]]
    # Guarded: without it, a hook that the administrator changed meanwhile would be taken back.
    body = {**served, "metadata": metadata, "webhooks": hooks}
    return Wanted(webhook_resource(served["kind"]), body, guarded=True)


def _created_by_us(live: Json) -> bool:
    return _CREATED_BY_US in (live["metadata"].get("annotations") or {})


def _leads_here(served: Json, live: Json) -> bool:
    ours = {key: value for key, value in served["clientConfig"].items() if key != "caBundle"}
    others = {"url", "service"} - set(ours)
    return covers(live["clientConfig"], ours) and not any(live["clientConfig"].get(key) for key in others)


def _trusting(live: Json, bundle: str | None) -> Json:
    return live if bundle is None else {**live, "clientConfig": {**live["clientConfig"], "caBundle": bundle}}
