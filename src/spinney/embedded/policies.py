"""Validating admission policies: rules in CEL about writes, which a binding puts into force (without parameters)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinney.api.meta import Json
from spinney.embedded import cel
from spinney.embedded.conversion import load
from spinney.embedded.errors import Refusal, forbidden
from spinney.embedded.hooks import Hook, Operation, hook_of

if TYPE_CHECKING:
    from spinney.embedded.calls import Call
    from spinney.embedded.server import ApiServer

POLICIES = "admissionregistration.k8s.io/validatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/validatingadmissionpolicybindings"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(frozen=True)
class Bound:
    """A policy that a binding puts into force, each with the writes that it is about."""

    name: str
    binding: str
    spec: Json
    actions: tuple[str, ...]
    matches: tuple[Hook, ...]


def bound_policies(server: ApiServer) -> list[Bound]:
    """Every policy that is in force, by the name of its binding."""
    policies = {item.name: load(item) for item in server.store.table(POLICIES).range("")}
    found: list[Bound] = []
    for item in server.store.table(BINDINGS).range(""):
        spec = load(item).get("spec") or {}
        policy = policies.get(spec.get("policyName", ""))
        if policy is None:
            continue
        name = policy["metadata"]["name"]
        matches = [_match(name, policy["spec"].get("matchConstraints") or {})]
        if spec.get("matchResources"):
            matches.append(_match(name, spec["matchResources"]))
        found.append(Bound(name, item.name, policy["spec"], tuple(spec.get("validationActions") or ()), tuple(matches)))
    return found


def _match(name: str, resources: Json) -> Hook:
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*", "*/*"], "operations": ["*"]}]
    return hook_of(name, {"name": name, **resources, "rules": resources.get("resourceRules") or everything})


def wants(policy: Bound, call: Call, operation: Operation) -> bool:
    """Whether a policy is about a write, selectors apart."""
    return all(match.wants(call.kind, call.subresource, operation) for match in policy.matches)


def check(policy: Bound, call: Call, request: Json, namespace: Json | None) -> None:
    """Hold a write to a policy: refuse it, or warn of it, as the binding says."""
    values: dict[str, Any] = {
        "object": request["object"],
        "oldObject": request["oldObject"],
        "request": request,
        "namespaceObject": namespace,
        "params": None,
        "authorizer": None,
    }
    for rule in policy.spec.get("matchConditions") or ():
        try:
            if cel.evaluate(rule["expression"], values) is not True:
                return
        except cel.Failed:
            if policy.spec.get("failurePolicy") == "Ignore":
                return
    variables: Json = {}
    for variable in policy.spec.get("variables") or ():
        try:
            variables[variable["name"]] = cel.evaluate(variable["expression"], {**values, "variables": variables})
        except cel.Failed:
            # Whoever uses it fails for want of it.
            continue
    for rule in policy.spec.get("validations") or ():
        why = _failure(rule, {**values, "variables": variables}, policy.spec.get("failurePolicy", "Fail"))
        if why:
            _act(policy, call, why, rule.get("reason", "Invalid"))
            return


def _failure(rule: Json, values: dict[str, Any], policy: str) -> str:
    expression = rule["expression"]
    try:
        if cel.evaluate(expression, values) is True:
            return ""
    except cel.Failed as error:
        return "" if policy == "Ignore" else f"expression '{expression}' resulted in error: {error}"
    if rule.get("messageExpression"):
        try:
            told = cel.evaluate(rule["messageExpression"], values)
            if isinstance(told, str) and told.strip():
                return told
        except cel.Failed:
            pass
    return str(rule.get("message") or f"failed expression: {expression}")


def _act(policy: Bound, call: Call, why: str, reason: str) -> None:
    where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{policy.binding}'"
    if "Warn" in policy.actions:
        call.warnings.append(f"Validation failed for {where}: {why}")
    if "Deny" in policy.actions:
        told = f"{where} denied request: {why}"
        refusal = forbidden(call.kind, call.name, told)
        details = {**(refusal.details or {}), "causes": [{"message": told}]}
        raise Refusal(_CODES.get(reason, 422), reason, refusal.message, details)
