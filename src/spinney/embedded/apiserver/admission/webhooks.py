"""Admission: validating policies and webhooks are asked before a write is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.access.authentication import user_info
from spinney.embedded.apiserver.access.rbac import Authorizer
from spinney.embedded.apiserver.admission import validating_policies, webhook_responses
from spinney.embedded.apiserver.admission.cel_authorizer import authorizer_variable
from spinney.embedded.apiserver.admission.matching import FailedCondition, Hook, Operation, conditions_hold, hooks_of
from spinney.embedded.apiserver.admission.validating_policies import BINDINGS, POLICIES, Policies
from spinney.embedded.apiserver.admission.webhook_responses import BadAnswer
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, forbidden, internal
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Event, load

MUTATING = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
VALIDATING = "admissionregistration.k8s.io/validatingwebhookconfigurations"
# Admission does not apply to its own configuration.
_TABLES = (MUTATING, VALIDATING, POLICIES, BINDINGS)
Reviewer = Callable[[bytes], Awaitable[bytes]]
# From a webhook's clientConfig to a function that calls it, in this process or over HTTPS.
Resolver = Callable[[Json], Reviewer]


class Admission:
    """The configured webhooks, mutating ones before validating ones, by the name of their configuration."""

    tables: frozenset[str] | None = frozenset(_TABLES)

    def __init__(self, core: Core, kinds: Kinds, authorizer: Authorizer, resolve: Resolver) -> None:
        self._core = core
        self._authorizer = authorizer
        self.resolve = resolve
        self._hooks: dict[str, list[Hook]] = {MUTATING: [], VALIDATING: []}
        self._policies = Policies(core, kinds, authorizer)

    def follow(self, table: str, event: Event) -> None:
        """Read the configurations of a table again when one of them changes."""
        if table in (POLICIES, BINDINGS):
            self._policies.refresh()
        else:
            items = self._core.store.table(table).range("")
            self._hooks[table] = [hook for item in items for hook in hooks_of(load(item))]

    def applies_to(self, kind: Kind) -> bool:
        """Whether a webhook or policy could match a write of this kind."""
        return self.mutates(kind) or self.validates(kind)

    def mutates(self, kind: Kind) -> bool:
        """Whether a mutating webhook could match a write of this kind."""
        return bool(self._hooks[MUTATING]) and kind.table not in (MUTATING, VALIDATING)

    def validates(self, kind: Kind) -> bool:
        """Whether a validating webhook or policy could match a write of this kind."""
        return bool(self._hooks[VALIDATING] or self._policies.bound) and kind.table not in _TABLES

    async def mutate(self, call: Call, operation: Operation, new: Json, old: Json | None) -> Json:
        """The object after all mutating webhooks.

        Those that want it are asked once more where somebody changed the object after them.
        """
        # Of the hooks to be asked again: those that saw the object as it is, and those that did not.
        current: list[Hook] = []
        outdated: list[Hook] = []
        for hook in self._hooks[MUTATING]:
            result = await self._call(hook, call, operation, new, old)
            if result is not None and result is not new:
                new, outdated, current = result, outdated + current, []
            if result is not None and hook.reinvoked:
                current.append(hook)
        for hook in self._hooks[MUTATING] if outdated else ():
            if hook in outdated:
                result = await self._call(hook, call, operation, new, old)
                if result is not None and result is not new:
                    new, outdated, current = result, outdated + current, []
        return new

    async def validate(self, call: Call, operation: Operation, new: Json, old: Json | None) -> None:
        """Check the write against the policies, then ask the validating webhooks."""
        self._check_policies(call, operation, new, old)
        for hook in self._hooks[VALIDATING]:
            await self._call(hook, call, operation, new, old)

    async def validate_delete(self, call: Call, old: Json) -> None:
        """Ask all webhooks about a deletion."""
        if call.kind.table in _TABLES:
            return
        self._check_policies(call, Operation.DELETE, None, old)
        for hook in (*self._hooks[MUTATING], *self._hooks[VALIDATING]):
            await self._call(hook, call, Operation.DELETE, None, old)

    def _check_policies(self, call: Call, operation: Operation, new: Json | None, old: Json | None) -> None:
        objections: list[validating_policies.Objection] = []
        for policy in self._policies.bound:
            if not validating_policies.matches(policy, call, operation):
                continue
            if not all(self._selected(match, call, new, old) for match in policy.matches):
                continue
            request = _request(self._core.chance.uid(), call, operation, new, old)
            item = self._core.store.get("/namespaces", call.namespace) if call.namespace else None
            namespace = load(item) if item is not None else None
            objections += self._policies.objections(policy, call, request, namespace)
        validating_policies.enforce(call, objections)

    async def _call(
        self, hook: Hook, call: Call, operation: Operation, new: Json | None, old: Json | None
    ) -> Json | None:
        """The object after one webhook; None if the webhook does not match."""
        if not hook.matches(call.kind, call.subresource, operation) or not self._selected(hook, call, new, old):
            return None
        request = _request(self._core.chance.uid(), call, operation, new, old)
        with authorizer_variable(self._authorizer, call) as authorizer:
            if not _conditions_hold(hook, call, request, authorizer):
                return None
        try:
            response = await self._review(hook, request)
            changed = new
            if response.get("allowed") and response.get("patch") and new is not None:
                changed = _patched(hook, response, new)
        except Refusal:
            if hook.must_answer:
                raise
            return new
        call.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise _denied(hook.name, response.get("status") or {})
        return changed

    def _selected(self, hook: Hook, call: Call, new: Json | None, old: Json | None) -> bool:
        if hook.namespaces and not self._in_namespace(hook, call, new or old or {}):
            return False
        if not hook.objects:
            return True
        labels = [(item["metadata"].get("labels") or {}) for item in (new, old) if item is not None]
        return any(selectors.matches(hook.objects, each_labels) for each_labels in labels)

    def _in_namespace(self, hook: Hook, call: Call, document: Json) -> bool:
        if call.kind.table == "/namespaces":
            return selectors.matches(hook.namespaces, document["metadata"].get("labels") or {})
        if not call.kind.namespaced:
            return True
        item = self._core.store.get("/namespaces", call.namespace)
        return item is not None and selectors.matches(hook.namespaces, item.labels)

    async def _review(self, hook: Hook, request: Json) -> Json:
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        client = {**hook.client, "timeoutSeconds": int(hook.seconds)}
        try:
            async with asyncio.timeout(hook.seconds):
                body = await self.resolve(client)(encode(review))
            return webhook_responses.read(body, request["uid"])
        except TimeoutError:
            problem = f'failed to call webhook: Post "{address(client)}": context deadline exceeded'
        except BadAnswer as error:
            problem = str(error)
        except (OSError, LookupError) as error:
            problem = f"failed to call webhook: {error}"
        raise internal(f'failed calling webhook "{hook.name}": {problem}')


def address(client: Json) -> str:
    """The URL of a webhook; a service is called on loopback, where all our components run."""
    service = client.get("service") or {}
    url = client.get("url") or f"https://127.0.0.1:{service.get('port', 443)}{service.get('path', '/')}"
    return f"{url}{'&' if '?' in url else '?'}timeout={client.get('timeoutSeconds', 10)}s"


def _denied(name: str, status: Json) -> Refusal:
    reason = status.get("message") or status.get("reason")
    message = f'admission webhook "{name}" denied the request'
    message = f"{message}: {reason}" if reason else f"{message} without explanation"
    code = status.get("code") or 0
    return Refusal(code if code >= 400 else 400, status.get("reason", ""), message, status.get("details"))


def _patched(hook: Hook, response: Json, new: Json) -> Json:
    try:
        return webhook_responses.patched(response, new)
    except BadAnswer as error:
        raise internal(f'failed calling webhook "{hook.name}": {error}') from None


def _conditions_hold(hook: Hook, call: Call, request: Json, authorizer: Json) -> bool:
    """Whether a webhook's matchConditions hold."""
    values = {"object": request["object"], "oldObject": request["oldObject"], "request": request}
    try:
        return conditions_hold(hook.conditions, {**values, "authorizer": authorizer})
    except FailedCondition as failed:
        if hook.must_answer:
            raise forbidden(call.kind, call.name, str(failed)) from None
        return False


def _request(uid: str, call: Call, operation: Operation, new: Json | None, old: Json | None) -> Json:
    kind = call.kind
    body = kind.subresources[call.subresource] if call.subresource else kind
    gvk = {"group": body.group, "version": body.version, "kind": body.kind}
    gvr = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request: Json = {
        "uid": uid,
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": call.name,
        "operation": operation.value,
        "userInfo": user_info(call.user),
        "object": new,
        "oldObject": old,
        "dryRun": call.dry_run,
        "options": {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1", **_options(call)},
    }
    if not call.name:
        del request["name"]
    if call.kind.namespaced:
        request["namespace"] = call.namespace
    if call.subresource:
        request["subResource"] = request["requestSubResource"] = call.subresource
    return request


def _options(call: Call) -> Json:
    """The options of a request."""
    options: Json = {key: call.query[key] for key in ("fieldManager", "fieldValidation") if call.query.get(key)}
    if call.dry_run:
        options["dryRun"] = ["All"]
    return {**options, **{key: value for key, value in call.options.items() if key not in ("kind", "apiVersion")}}
