"""The operator's admission webhooks: defaults, checks, topology bindings, and protection of managed objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from spinney.api import labels
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Secret, Service, ServiceAccount
from spinney.api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.api.rbac import Role, RoleBinding
from spinney.backends.admission import review_set
from spinney.backends.interface import TopologyAware
from spinney.backends.registry import NoChoice, Registry
from spinney.backends.served import discover
from spinney.grove.admission import authorizer, dry_run, pod_shapes, sets, topology_bindings
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.admission.problems import Problems
from spinney.grove.admission.topology import levels
from spinney.grove.settings import Settings
from spinney.kube.admission.review import allowed, changed, refused
from spinney.kube.caches.cache import Cache
from spinney.kube.client.flow import Priority
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime, Webhook, webhook_rule

Review = Callable[[Json], Awaitable[Json]]
# Called at each review: the settings may be replaced when the component runs.
SettingsNow = Callable[[], Settings]

_DEFAULT_SCHEDULER = "default-scheduler"


def webhooks(settings: SettingsNow, registry: Callable[[], Registry]) -> tuple[Webhook, ...]:
    """With upstream's names and paths; managed objects are protected only where that is switched on."""
    pcs = webhook_rule((PodCliqueSet.resource,), "CREATE", "UPDATE")
    always = (
        Webhook(
            name="podcliqueset-defaulting-webhook",
            path="/webhooks/default-podcliqueset",
            mutating=True,
            review=_defaulting,
            rules=(pcs,),
        ),
        Webhook(
            name="podcliqueset-validating-webhook",
            path="/webhooks/validate-podcliqueset",
            mutating=False,
            review=lambda runtime: _validating(runtime, settings, registry),
            rules=(pcs,),
        ),
        Webhook(
            name="clustertopology-validating-webhook",
            path="/webhooks/validate-clustertopology",
            mutating=False,
            review=lambda runtime: _binding(settings, registry),
            rules=(webhook_rule((ClusterTopologyBinding.resource,), "CREATE", "UPDATE"),),
        ),
    )
    return (*always, _authorizer(settings)) if settings().config.authorizer.enabled else always


def _authorizer(settings: SettingsNow) -> Webhook:
    return Webhook(
        name="authorizer-webhook",
        path="/webhooks/authorizer-webhook",
        mutating=False,
        review=lambda runtime: authorizer.reviewer(runtime, settings),
        rules=(
            webhook_rule((Secret.resource, ServiceAccount.resource, Service.resource), "UPDATE", "DELETE"),
            webhook_rule((Pod.resource,), "UPDATE"),
            webhook_rule((Role.resource, RoleBinding.resource), "UPDATE", "DELETE"),
            webhook_rule((HorizontalPodAutoscaler.resource,), "UPDATE", "DELETE"),
            webhook_rule((PodClique.resource, PodCliqueScalingGroup.resource), "CREATE", "UPDATE", "DELETE"),
            webhook_rule((PodGang.resource,), "CREATE", "UPDATE", "DELETE"),
        ),
        object_selector={"matchLabels": {labels.MANAGED_BY: labels.GROVE_OPERATOR}},
    )


def _defaulting(runtime: Runtime) -> Review:
    async def review(request: Json) -> Json:
        return changed(request, with_defaults(request["object"], str(request.get("namespace") or "")))

    return review


def _validating(runtime: Runtime, settings: SettingsNow, registry: Callable[[], Registry]) -> Review:
    cache = runtime.caches.of(ClusterTopologyBinding)

    async def every_problem(request: Json, new: Json, old: Json | None) -> Problems:
        now = settings()
        await cache.synced()
        cluster = sets.ClusterFacts(
            topology_aware=now.topology_aware,
            mnnvl=now.mnnvl,
            bindings=await _bindings(runtime, cache, new),
        )
        # A set stored while no webhook was registered has no defaults: to get them is no change of its fields.
        before = with_defaults(old, str(request.get("namespace") or "")) if old else None
        problems = sets.check_update(before, new, cluster) if before else sets.check_create(new, cluster)
        if _spec_changed(old, new):
            # All of it, so that a user hears of every mistake at once.
            await _check_backend(runtime, new, now, registry(), problems)
            await dry_run.check(runtime.client, new, old, problems)
        return problems

    async def review(request: Json) -> Json:
        new, old = request["object"], request.get("oldObject")
        if new["metadata"].get("deletionTimestamp"):
            # Of a deleted set only finalizers change, and they must be removable.
            return allowed(request)
        # The other checks read pod specs.
        problems = pod_shapes.check(new) or await every_problem(request, new, old)
        if problems:
            name = f"{new['metadata'].get('namespace', '')}/{new['metadata'].get('name', '')}"
            return refused(request, f"PodCliqueSet {name} is invalid: {problems.text()}", code=422, reason="Invalid")
        return allowed(request, problems.warnings)

    return review


async def _bindings(runtime: Runtime, cache: Cache[ClusterTopologyBinding], pcs: Json) -> dict[str, list[str]]:
    """The domains of every binding; one that was created just before the set may not be cached yet."""
    bindings = {binding.name: binding for binding in cache}
    template = (pcs.get("spec") or {}).get("template") or {}
    for name in {level.topology for level in levels(template, "")} - {"", *bindings}:
        with suppress(NotFound):
            async with runtime.client.turn(Priority.REVIEW):
                bindings[name] = await runtime.client.get(ClusterTopologyBinding, name)
    return {name: [level.domain for level in binding.spec.levels] for name, binding in bindings.items()}


def _spec_changed(old: Json | None, new: Json) -> bool:
    return old is None or old.get("spec") != new.get("spec")


async def _check_backend(
    runtime: Runtime, new: Json, settings: Settings, registry: Registry, problems: Problems
) -> None:
    pcs = convert(PodCliqueSet, new)
    try:
        choice = registry.choose(pcs, settings.default_profile)
    except NoChoice as error:
        problems.forbidden(error.field, error.problem)
        return
    if not settings.is_enabled(choice.scheduler_name):
        enabled = ", ".join(settings.config.scheduler.names)
        problems.forbidden(
            "spec.template.cliques[0].spec.podSpec.schedulerName",
            f"scheduler {choice.scheduler_name!r} is not enabled in the operator's scheduler.profiles; "
            f"name one of {enabled}, or add a profile",
        )
        return
    verdict = review_set(choice.backend, pcs, await discover(runtime.client, choice.backend.resources))
    for problem in verdict.problems:
        problems.forbidden(problem.field, problem.message)
    problems.warnings += [*choice.warnings, *verdict.warnings]


def _binding(settings: Callable[[], Settings], registry: Callable[[], Registry]) -> Review:
    async def review(request: Json) -> Json:
        backends = list(registry())
        aware = {backend.topology_scheduler for backend in backends if isinstance(backend, TopologyAware)}
        enabled = aware | {backend.scheduler_name("") for backend in backends} | {_DEFAULT_SCHEDULER}
        enabled = {name for name in enabled if settings().is_enabled(name)}
        problems = topology_bindings.check(request["object"], enabled, aware)
        if problems:
            name = request["object"]["metadata"].get("name", "")
            text = f"ClusterTopologyBinding {name} is invalid: {problems.text()}"
            return refused(request, text, code=422, reason="Invalid")
        return allowed(request)

    return review
