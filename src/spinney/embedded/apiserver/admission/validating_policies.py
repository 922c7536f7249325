"""Validating admission policies: CEL rules that a binding applies to writes, optionally with parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinney.api.meta import Json
from spinney.cel.costs import Budget
from spinney.cel.expressions import CompileError, EvaluationError, evaluate
from spinney.embedded.apiserver.access.rbac import Authorizer
from spinney.embedded.apiserver.admission.cel_authorizer import authorizer_variable
from spinney.embedded.apiserver.admission.matching import FailedCondition, Hook, Operation, conditions_hold, hook_of
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, forbidden
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.conversion import from_stored
from spinney.embedded.apiserver.store.store import load

POLICIES = "admissionregistration.k8s.io/validatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/validatingadmissionpolicybindings"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE = 5120
_ANYTHING = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "*/*"], "operations": ["*"]}]


@dataclass(frozen=True)
class Bound:
    """A policy with one of its bindings, and the writes that both match."""

    name: str
    binding: str
    spec: Json
    actions: tuple[str, ...]
    matches: tuple[Hook, ...]
    excludes: tuple[Hook, ...]
    reference: Json | None

    @property
    def label(self) -> str:
        """The policy's name in messages."""
        return f"ValidatingAdmissionPolicy '{self.name}' with binding '{self.binding}'"


@dataclass(frozen=True)
class Objection:
    """A rule of a policy that a write breaks."""

    policy: Bound
    message: str
    reason: str = "Invalid"
    # Set where the policy itself cannot be used, whatever its binding.
    by: str = ""


class _Unusable(Exception):
    """A policy or binding whose parameters cannot be used."""

    def __init__(self, message: str, by: str = "") -> None:
        super().__init__(message)
        self.by = by


class Policies:
    """The bound policies, and the check of a write against them."""

    def __init__(self, core: Core, kinds: Kinds, authorizer: Authorizer) -> None:
        self._core = core
        self._kinds = kinds
        self._authorizer = authorizer
        self.bound: list[Bound] = []

    def refresh(self) -> None:
        """Read the bound policies from the store, in the order of their bindings' names."""
        store = self._core.store
        policies = {item.name: load(item) for item in store.table(POLICIES).range("")}
        bound_policies: list[Bound] = []
        for item in store.table(BINDINGS).range(""):
            spec = load(item).get("spec") or {}
            policy = policies.get(spec.get("policyName", ""))
            if policy is None:
                continue
            name = policy["metadata"]["name"]
            match_resources = (policy["spec"].get("matchConstraints") or {}, spec.get("matchResources") or {})
            bound = Bound(
                name,
                item.name,
                policy["spec"],
                tuple(spec.get("validationActions") or ()),
                tuple(_match(name, match, match.get("resourceRules") or _ANYTHING) for match in match_resources),
                tuple(_match(name, {}, match.get("excludeResourceRules") or []) for match in match_resources),
                spec.get("paramRef"),
            )
            bound_policies.append(bound)
        self.bound = bound_policies

    def objections(self, policy: Bound, call: Call, request: Json, namespace: Json | None) -> list[Objection]:
        """The objections of a policy to a write, for each parameter object."""
        values: dict[str, Any] = {
            "object": request["object"],
            "oldObject": request["oldObject"],
            "request": request,
            "namespaceObject": namespace,
        }
        with authorizer_variable(self._authorizer, call) as authorizer:
            values["authorizer"] = authorizer
            conditions = [rule["expression"] for rule in policy.spec.get("matchConditions") or ()]
            try:
                if not conditions_hold(conditions, {**values, "params": None}):
                    return []
                parameters = self._parameters(policy, call)
            except (FailedCondition, _Unusable) as error:
                by = error.by if isinstance(error, _Unusable) else ""
                return [] if _ignores_failures(policy) else [Objection(policy, str(error), by=by)]
            return [
                objection for params in parameters for objection in _objections(policy, {**values, "params": params})
            ]

    def _parameters(self, policy: Bound, call: Call) -> list[Json | None]:
        """The parameter objects of a policy; one None if it has no parameters."""
        kind, reference = policy.spec.get("paramKind"), policy.reference
        if kind is None:
            return [None]
        param_kind = self._kinds.by_kind(kind.get("apiVersion", ""), kind.get("kind", ""))
        if param_kind is None:
            group, _, version = kind.get("apiVersion", "").rpartition("/")
            gvk = f"{group}/{version}, Kind={kind.get('kind', '')}"
            why = f"failed to configure policy: failed to find resource referenced by paramKind: '{gvk}'"
            raise _Unusable(why, by=f"ValidatingAdmissionPolicy '{policy.name}'")
        if reference is None:
            return [None]
        namespace = ""
        if param_kind.namespaced:
            namespace = reference.get("namespace") or call.namespace
            if not namespace:
                raise _unbound("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
        elif reference.get("namespace"):
            raise _unbound("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if reference.get("name"):
            item = self._core.store.get(param_kind.table, param_kind.key(namespace, reference["name"]))
            items = [item] if item is not None else []
        else:
            wanted = selectors.from_object(reference.get("selector"))
            items = [
                item
                for item in self._core.store.table(param_kind.table).range(namespace)
                if selectors.matches(wanted, item.labels)
            ]
        if not items and reference.get("parameterNotFoundAction") == "Deny":
            raise _unbound("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [from_stored(param_kind, load(item)) for item in items]


def _match(name: str, resources: Json, rules: list[Json]) -> Hook:
    return hook_of(name, {"name": name, **resources, "rules": rules})


def matches(policy: Bound, call: Call, operation: Operation) -> bool:
    """Whether a policy matches a write, without its selectors."""

    def covers(match: Hook) -> bool:
        return match.matches(call.kind, call.subresource, operation, call.name)

    return all(covers(match) for match in policy.matches) and not any(covers(match) for match in policy.excludes)


def _ignores_failures(policy: Bound) -> bool:
    return bool(policy.spec.get("failurePolicy") == "Ignore")


def _unbound(why: str) -> _Unusable:
    return _Unusable(f"failed to configure binding: {why}")


def _objections(policy: Bound, values: dict[str, Any]) -> list[Objection]:
    variables: Json = {}
    failed: dict[str, str] = {}
    budget = Budget()
    for variable in policy.spec.get("variables") or ():
        try:
            variables[variable["name"]] = evaluate(variable["expression"], {**values, "variables": variables}, budget)
        except (EvaluationError, CompileError) as error:
            # Rules that use the variable fail because it is missing.
            failed[variable["name"]] = _reason(error, failed)
    objections: list[Objection] = []
    for rule in policy.spec.get("validations") or ():
        why = _failure(rule, {**values, "variables": variables}, failed, policy, budget)
        if why:
            objections.append(Objection(policy, why, rule.get("reason") or "Invalid"))
    return objections


def _reason(error: Exception, failed: dict[str, str]) -> str:
    """The error's message; where a variable is missing because it failed, the reason of that."""
    name = error.missing_key if isinstance(error, EvaluationError) else ""
    if name not in failed:
        return str(error)
    return f'composited variable "{name}" fails to evaluate: {failed[name]}'


def _failure(rule: Json, values: dict[str, Any], failed: dict[str, str], policy: Bound, budget: Budget) -> str:
    expression = rule["expression"]
    try:
        if evaluate(expression, values, budget) is True:
            return ""
    except (EvaluationError, CompileError) as error:
        message = _reason(error, failed)
        return "" if _ignores_failures(policy) else f"expression '{expression}' resulted in error: {message}"
    if rule.get("messageExpression"):
        try:
            message = evaluate(rule["messageExpression"], values, budget)
            if (
                isinstance(message, str)
                and message.strip()
                and "\n" not in message
                and len(message) <= _LONGEST_MESSAGE
            ):
                return message
        except (EvaluationError, CompileError):
            pass
    return str(rule.get("message") or f"failed expression: {expression}")


def enforce(call: Call, objections: list[Objection]) -> None:
    """Warn or refuse, as the bindings say; the first denying objection becomes the refusal."""
    for objection in objections:
        if "Warn" in objection.policy.actions:
            call.warnings.append(f"Validation failed for {objection.policy.label}: {objection.message}")
    denied = next((objection for objection in objections if "Deny" in objection.policy.actions), None)
    if denied is None:
        return
    message = f"{denied.by or denied.policy.label} denied request: {denied.message}"
    refusal = forbidden(call.kind, call.name, message)
    details = {**(refusal.details or {}), "causes": [{"message": message}]}
    raise Refusal(_CODES.get(denied.reason, 422), denied.reason, refusal.message, details)
