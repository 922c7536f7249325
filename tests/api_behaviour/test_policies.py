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

    async def enforce(
        self, *actions: str, binding: Json | None = None, names: list[str] | None = None, **spec: Any
    ) -> None:
        """Put rules into force."""
        rule: Json = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        rule |= {"resourceNames": names} if names else {}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        match = {"resourceRules": [rule], "namespaceSelector": selector}
        body = {"metadata": {"name": self.name}, "spec": {"matchConstraints": match, **spec}}
        (await self.api.post(f"{ADMISSION}/validatingadmissionpolicies", body)).ok()
        bound = {"policyName": self.name, "validationActions": list(actions or ("Deny",)), **(binding or {})}
        path = f"{ADMISSION}/validatingadmissionpolicybindings"
        (await self.api.post(path, {"metadata": {"name": self.name}, "spec": bound})).ok()

    async def create(self, name: str = "a", **data: str) -> Answer:
        """Try a ConfigMap."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        return await self.api.post(path, make.config_map(name, **data), dryRun="All")

    async def refused(self, **data: str) -> Answer:
        """Try a ConfigMap until it is refused: a server takes a moment to notice a policy."""
        return await self.api.repeat(lambda: self.create(**data), lambda answer: answer.code != 201)

    async def told(self, why: str) -> None:
        """Try a ConfigMap until it is refused for a reason: parameters are noticed later than policies."""
        wanted = self.said(why)
        await self.api.repeat(lambda: self.create(bad="1"), lambda answer: answer.body.get("message") == wanted)

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


PARAMETER: Json = {"apiVersion": "v1", "kind": "ConfigMap"}
LIMIT = [
    {"expression": "int(object.data.bad) > int(params.data.max)", "messageExpression": "'not above ' + params.data.max"}
]


async def parameter(policy: Policy, namespace: str, most: str) -> None:
    """A ConfigMap that policies can refer to."""
    body = {"metadata": {"name": "limit", "labels": {"limit": "yes"}}, "data": {"max": most}}
    (await policy.api.post(f"/api/v1/namespaces/{namespace}/configmaps", body)).ok()


@pytest.mark.parametrize("reference", [{"name": "limit"}, {"selector": {"matchLabels": {"limit": "yes"}}}])
async def test_parameters(policy: Policy, reference: Json) -> None:
    """A policy sees the parameters that its binding names or selects, in the namespace of the request."""
    await parameter(policy, policy.namespace, "3")
    binding = {"paramRef": {**reference, "parameterNotFoundAction": "Deny"}}
    await policy.enforce(binding=binding, paramKind=PARAMETER, validations=LIMIT)
    await policy.told("not above 3")
    assert (await policy.create(bad="4")).code == 201


async def test_parameters_of_another_namespace(policy: Policy, cluster: Cluster) -> None:
    """Parameters may be in a namespace that the binding names."""
    other = await cluster.namespace()
    await parameter(policy, other, "5")
    binding = {"paramRef": {"name": "limit", "namespace": other, "parameterNotFoundAction": "Deny"}}
    await policy.enforce(binding=binding, paramKind=PARAMETER, validations=LIMIT)
    await policy.told("not above 5")


async def test_missing_parameters(policy: Policy) -> None:
    """Where parameters are missing, the binding says whether writes are refused."""
    binding = {"paramRef": {"name": "absent", "parameterNotFoundAction": "Deny"}}
    await policy.enforce(binding=binding, paramKind=PARAMETER, validations=LIMIT)
    why = "no params found for policy binding with `Deny` parameterNotFoundAction"
    await policy.told(f"failed to configure binding: {why}")
    path = f"{ADMISSION}/validatingadmissionpolicybindings/{policy.name}"
    (await policy.api.merge(path, {"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}})).ok()
    await policy.api.repeat(lambda: policy.create(bad="1"), lambda answer: answer.code == 201)


async def test_namespace_of_what_has_none(policy: Policy) -> None:
    """Parameters that are in no namespace are not looked for in one."""
    binding = {"paramRef": {"name": "default", "namespace": "default", "parameterNotFoundAction": "Deny"}}
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    await policy.enforce(binding=binding, paramKind=kind, validations=[{"expression": "true"}])
    why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    await policy.told(f"failed to configure binding: {why}")


RIGHTS = {
    "mine": "authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
    "of-an-account": "!authorizer.serviceAccount('default', 'no').group('').resource('pods').check('get').allowed()",
    "of-a-path": "authorizer.path('/healthz').check('get').allowed()",
    "of-the-request": "authorizer.requestResource.check('create').allowed()",
    "no-error": "!authorizer.group('apps').resource('deployments').subresource('scale').check('get').errored()",
}


@pytest.mark.parametrize("case", RIGHTS)
async def test_authorizer(policy: Policy, case: str) -> None:
    """Rules can ask who may do what."""
    rules = [{"expression": RIGHTS[case], "message": "no"}, {"expression": "false", "message": "yes"}]
    await policy.enforce(validations=rules)
    assert (await policy.refused()).message == policy.said("yes")


async def test_every_warning(policy: Policy) -> None:
    """Each rule that does not hold is warned of."""
    rules = [{"expression": "1 == 2", "message": "one"}, {"expression": "2 == 3", "message": "two"}]
    await policy.enforce("Warn", validations=rules)
    answer = await policy.api.repeat(policy.create, lambda answer: bool(answer.warnings))
    failure = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{policy.name}'"
    assert answer.warnings == f'299 - "{failure}: one", 299 - "{failure}: two"'


async def test_failed_variable(policy: Policy) -> None:
    """A rule that uses a variable which cannot be had says so."""
    variables = [{"name": "x", "expression": "object.data.absent"}]
    await policy.enforce(variables=variables, validations=[{"expression": "variables.x == '1'"}])
    why = 'composited variable "x" fails to evaluate: no such key: absent'
    expected = policy.said(f"expression 'variables.x == '1'' resulted in error: {why}")
    assert (await policy.refused(bad="1")).message == expected


async def test_failed_condition(policy: Policy) -> None:
    """A condition that cannot be told refuses the write."""
    condition = "object.data.absent == 'x'"
    await policy.enforce(matchConditions=[{"name": "c", "expression": condition}], validations=[{"expression": "true"}])
    expected = policy.said(f"expression '{condition}' resulted in error: no such key: absent")
    assert (await policy.refused(bad="1")).message == expected


async def test_names(policy: Policy) -> None:
    """A rule may be about certain names only."""
    await policy.enforce(names=["a"], validations=[{"expression": "false", "message": "no"}])
    assert (await policy.refused()).message == policy.said("no")
    assert (await policy.create("b")).code == 201


async def test_message_of_one_line(policy: Policy) -> None:
    """A message that was worked out has one line, or it is not told."""
    await policy.enforce(validations=[{"expression": "false", "messageExpression": "'a\\nb'", "message": "plain"}])
    assert (await policy.refused()).message == policy.said("plain")


BAD_RULES: dict[str, tuple[Json, str, str]] = {
    "syntax": (
        {"expression": "object.("},
        "expression",
        'Invalid value: "object.(": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at '
        "input '.('\n | object.(\n | .......^",
    ),
    "unknown": (
        {"expression": "foo == 1"},
        "expression",
        "Invalid value: \"foo == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in "
        "container '')\n | foo == 1\n | ^",
    ),
    "no-parameters": (
        {"expression": "params == null"},
        "expression",
        "Invalid value: \"params == null\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' "
        "(in container '')\n | params == null\n | ^",
    ),
    "type": ({"expression": "'a'"}, "expression", "Invalid value: \"'a'\": must evaluate to bool but got string"),
    "message": (
        {"expression": "true", "messageExpression": "1"},
        "messageExpression",
        'Invalid value: "1": must evaluate to string but got int',
    ),
}


@pytest.mark.parametrize("case", BAD_RULES)
async def test_bad_rule(api: Api, cluster: Cluster, case: str) -> None:
    """A rule that cannot be used is refused when the policy is made."""
    rule, field, why = BAD_RULES[case]
    name = cluster.unique("policy")
    rules = [{"apiGroups": ["x.example"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [rule]}
    answer = await api.post(f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
    invalid = (
        f'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{name}" is invalid: spec.validations[0].{field}: '
    )
    answer.refused(422, "Invalid", invalid + why)


async def test_bad_binding(api: Api, cluster: Cluster) -> None:
    """A binding with an action that nobody knows is refused."""
    name = cluster.unique("policy")
    invalid = (
        f'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "{name}" is invalid: '
        'spec.validationActions[0]: Unsupported value: "Other": supported values: "Audit", "Deny", "Warn"'
    )
    binding = {"metadata": {"name": name}, "spec": {"policyName": "absent", "validationActions": ["Other"]}}
    (await api.post(f"{ADMISSION}/validatingadmissionpolicybindings", binding)).refused(422, "Invalid", invalid)
