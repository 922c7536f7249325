"""Validating admission policies: rules in CEL that a binding puts into force."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import make
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster

ADMISSION = "/apis/admissionregistration.k8s.io/v1"


class Policy:
    """A policy about the ConfigMaps of the test's namespace, and its binding, of the same name."""

    def __init__(self, api: Api, name: str, namespace: str) -> None:
        self.api = api
        self.name = name
        self.namespace = namespace

    async def enforce(self, *actions: str, **spec: Any) -> None:
        """Put rules into force."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        match = {"resourceRules": [rule], "namespaceSelector": selector}
        body = {"metadata": {"name": self.name}, "spec": {"matchConstraints": match, **spec}}
        (await self.api.post(f"{ADMISSION}/validatingadmissionpolicies", body)).ok()
        bound = {"policyName": self.name, "validationActions": list(actions or ("Deny",))}
        path = f"{ADMISSION}/validatingadmissionpolicybindings"
        (await self.api.post(path, {"metadata": {"name": self.name}, "spec": bound})).ok()

    async def create(self, name: str = "a", **data: str) -> Answer:
        """Try a ConfigMap."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        return await self.api.post(path, make.config_map(name, **data), dryRun="All")

    async def refused(self, **data: str) -> Answer:
        """Try a ConfigMap until it is refused: a server takes a moment to notice a policy."""
        return await self.api.repeat(lambda: self.create(**data), lambda answer: answer.code != 201)

    def said(self, why: str) -> str:
        """The message of a refusal."""
        where = f"ValidatingAdmissionPolicy '{self.name}' with binding '{self.name}'"
        return f'configmaps "a" is forbidden: {where} denied request: {why}'


@pytest.fixture
async def policy(api: Api, cluster: Cluster, namespace: str) -> AsyncIterator[Policy]:
    """A policy that the test fills in."""
    made = Policy(api, cluster.unique("policy"), namespace)
    yield made
    for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        await api.delete(f"{ADMISSION}/{plural}/{made.name}")


HAS_NO = "!has(object.data) || !('{0}' in object.data)"
RULES: dict[str, tuple[Json, int, str, str]] = {
    "expression": ({}, 422, "Invalid", f"failed expression: {HAS_NO.format('bad')}"),
    "message": ({"message": "not this one"}, 422, "Invalid", "not this one"),
    "told": ({"messageExpression": "'not ' + object.metadata.name"}, 422, "Invalid", "not a"),
    "reason": ({"message": "no", "reason": "Forbidden"}, 403, "Forbidden", "no"),
}


@pytest.mark.parametrize("case", RULES)
async def test_denied(policy: Policy, case: str) -> None:
    """A write that breaks a rule is refused with the rule's message and reason; others go through."""
    rule, code, reason, why = RULES[case]
    await policy.enforce(validations=[{"expression": HAS_NO.format("bad"), **rule}])
    body = (await policy.refused(bad="1")).refused(code, reason, policy.said(why))
    assert body["details"]["causes"] == [{"message": policy.said(why).partition("forbidden: ")[2]}]
    assert (await policy.create(good="1")).code == 201


async def test_error(policy: Policy) -> None:
    """A rule that cannot be evaluated refuses, where the policy must not fail."""
    await policy.enforce(validations=[{"expression": "object.data.missing == 'x'"}])
    why = "expression 'object.data.missing == 'x'' resulted in error: no such key: missing"
    (await policy.refused(other="1")).refused(422, "Invalid", policy.said(why))


async def test_variables_and_conditions(policy: Policy) -> None:
    """Rules may use variables, and hold only where the conditions do."""
    await policy.enforce(
        variables=[{"name": "size", "expression": "has(object.data) ? object.data.size() : 0"}],
        matchConditions=[{"name": "not-skipped", "expression": "object.metadata.name != 'skipped'"}],
        validations=[{"expression": "variables.size < 2", "message": "too big"}],
    )
    (await policy.refused(a="1", b="2")).refused(422, "Invalid", policy.said("too big"))
    assert (await policy.create("skipped", a="1", b="2")).code == 201


async def test_warning(policy: Policy) -> None:
    """A binding may warn instead."""
    await policy.enforce("Warn", validations=[{"expression": "object.metadata.name != 'a'", "message": "strange"}])
    answer = await policy.api.repeat(policy.create, lambda answer: bool(answer.warnings))
    where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{policy.name}'"
    assert (answer.code, answer.warnings) == (201, f'299 - "Validation failed for {where}: strange"')
