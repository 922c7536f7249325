"""Which writes a webhook or a policy matches: operations, resources, selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spinney.api.meta import Json
from spinney.cel.expressions import CompileError, EvaluationError, evaluate
from spinney.embedded.apiserver.access.rbac import lists
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.kinds import Kind


class Operation(StrEnum):
    """The operations that a webhook can be called for."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    configuration: str
    client: Json
    rules: tuple[Json, ...]
    equivalent: bool
    must_answer: bool
    namespaces: selectors.Selector
    objects: selectors.Selector
    conditions: tuple[str, ...]
    seconds: float
    reinvoked: bool

    def matches(self, kind: Kind, subresource: str, operation: Operation, name: str = "") -> bool:
        """Whether a rule covers the request; rules of policies may also name objects."""
        rules = (rule for rule in self.rules if not rule.get("resourceNames") or name in rule["resourceNames"])
        return any(self._covers(rule, kind, subresource, operation) for rule in rules)

    def _covers(self, rule: Json, kind: Kind, subresource: str, operation: Operation) -> bool:
        if not lists(rule.get("operations"), operation.value) or not lists(rule.get("apiGroups"), kind.group):
            return False
        # With matchPolicy Equivalent a rule for another version of the resource counts too.
        if not lists(rule.get("apiVersions"), kind.version) and not self.equivalent:
            return False
        scope = rule.get("scope", "*")
        if scope != "*" and (scope == "Namespaced") is not kind.namespaced:
            return False
        wanted = f"{kind.plural}/{subresource}" if subresource else kind.plural
        return any(_resource_matches(pattern, wanted) for pattern in rule.get("resources") or ())


def _resource_matches(pattern: str, wanted: str) -> bool:
    resource, _, sub = wanted.partition("/")
    base, slash, below = pattern.partition("/")
    if base not in ("*", resource):
        return False
    if not slash:
        return not sub
    return below in ("*", sub)


class FailedCondition(Exception):
    """A match condition that cannot be evaluated."""


def conditions_hold(expressions: Iterable[str], values: Mapping[str, Any]) -> bool:
    """Whether all match conditions hold; a false one takes precedence over errors in others."""
    failed = ""
    for expression in expressions:
        try:
            if evaluate(expression, values) is not True:
                return False
        except (EvaluationError, CompileError) as error:
            failed = failed or f"expression '{expression}' resulted in error: {error}"
    if failed:
        raise FailedCondition(failed)
    return True


def hook_of(configuration: str, hook: Json) -> Hook:
    """One webhook of a configuration."""
    return Hook(
        name=hook["name"],
        configuration=configuration,
        client=hook.get("clientConfig") or {},
        rules=tuple(hook.get("rules") or ()),
        equivalent=hook.get("matchPolicy") != "Exact",
        must_answer=hook.get("failurePolicy") != "Ignore",
        namespaces=selectors.from_object(hook.get("namespaceSelector")),
        objects=selectors.from_object(hook.get("objectSelector")),
        conditions=tuple(item["expression"] for item in hook.get("matchConditions") or ()),
        seconds=float(hook.get("timeoutSeconds") or 10),
        reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
    )


def hooks_of(configuration: Json) -> list[Hook]:
    """The webhooks of a configuration, in its order."""
    name = configuration["metadata"]["name"]
    return [hook_of(name, hook) for hook in configuration.get("webhooks") or ()]
