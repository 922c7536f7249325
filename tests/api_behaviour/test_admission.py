"""Admission webhooks: what they are told, what they may do, when they are asked, and what happens without them."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from spinney.testing.certificates import Authority
from tests import make
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


@dataclass
class Hooks:
    """A webhook server of the test's: `reviews` keeps what it was asked, `answer` says what it says."""

    api: Api
    name: str
    namespace: str
    url: str = ""
    bundle: str = ""
    reviews: list[Json] = field(default_factory=list)
    answer: Callable[[Json], Json] = lambda request: {"allowed": True}

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one review."""
        review = await request.json()
        self.reviews.append(review["request"])
        response = self.answer(review["request"])
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], **response},
        }
        return web.json_response(body)

    async def register(self, kind: str = "validating", **changes: object) -> None:
        """Register one webhook for ConfigMaps of the test's namespace, and wait until it is asked."""
        hook = {
            "name": "check.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": self.url, "caBundle": self.bundle},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            **changes,
        }
        path = f"{REGISTRATION}/{kind}webhookconfigurations"
        (await self.api.post(path, {"metadata": {"name": self.name}, "webhooks": [hook]})).ok()
        self.path = f"{path}/{self.name}"

    async def unregister(self) -> None:
        """Take the registration away."""
        if hasattr(self, "path"):
            (await self.api.delete(self.path)).ok()

    async def probe(self, asked: int = 1) -> None:
        """Try creations until one was reviewed so often: the server takes a moment to notice a registration."""
        wanted = {"metadata": {"generateName": "probe-", "labels": {"on": "yes"}}}

        async def act() -> Answer:
            self.reviews.clear()
            return await self.api.post(maps(self), wanted, dryRun="All")

        await self.api.repeat(act, lambda _: len(self.reviews) == asked)


@pytest.fixture
async def hooks(api: Api, cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[Hooks]:
    """A webhook server on loopback with its certificate."""
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server())
    made = Hooks(api, cluster.unique("hook"), namespace)
    # A controller puts this one into every namespace, in its own time: before any webhook could be asked about it.
    await api.until(f"{maps(made)}/kube-root-ca.crt", lambda answer: answer.code == 200)
    runner = web.ServerRunner(web.Server(made.handle))  # type: ignore[arg-type]  # a handler of plain requests
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.url = f"https://127.0.0.1:{runner.addresses[0][1]}/review"
    made.bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
    yield made
    await made.unregister()
    await runner.cleanup()


def maps(hooks: Hooks) -> str:
    """The ConfigMaps that the webhook is asked about."""
    return f"/api/v1/namespaces/{hooks.namespace}/configmaps"


def patching(*operations: Json) -> Callable[[Json], Json]:
    """An answer that patches."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


async def ready(hooks: Hooks) -> None:
    """Wait until the registration is noticed, then forget what was asked."""
    answer, hooks.answer = hooks.answer, lambda request: {"allowed": True}
    await hooks.probe()
    hooks.answer = answer
    hooks.reviews.clear()


async def test_review(hooks: Hooks) -> None:
    """A review tells the operation, the object, who asks and how."""
    await hooks.register()
    await ready(hooks)
    (await hooks.api.post(maps(hooks), make.config_map("a", k="v"))).ok()
    (request,) = hooks.reviews
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["requestKind"] == request["kind"]
    assert (request["name"], request["namespace"], request["operation"]) == ("a", hooks.namespace, "CREATE")
    assert request["object"]["data"] == {"k": "v"}
    assert request["object"]["metadata"]["uid"]
    assert (request["oldObject"], request["dryRun"]) == (None, False)
    assert request["options"]["kind"] == "CreateOptions"
    assert request["userInfo"]["username"] == "admin"
    assert "system:masters" in request["userInfo"]["groups"]


async def test_operations(hooks: Hooks) -> None:
    """Updates and deletions are reviewed with the old object."""
    await hooks.register()
    await ready(hooks)
    await hooks.api.post(maps(hooks), make.config_map("a", k="v"))
    await hooks.api.merge(f"{maps(hooks)}/a", {"data": {"k": "w"}})
    await hooks.api.delete(f"{maps(hooks)}/a")
    create, update, delete = hooks.reviews
    assert [each["operation"] for each in hooks.reviews] == ["CREATE", "UPDATE", "DELETE"]
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"k": "v"}, {"k": "w"})
    assert (delete["oldObject"]["data"], delete["object"]) == ({"k": "w"}, None)
    assert [each["options"]["kind"] for each in (update, delete)] == ["UpdateOptions", "DeleteOptions"]
    assert create["uid"] != update["uid"]


async def test_deny(hooks: Hooks) -> None:
    """A denial is told with the webhook's name and words."""
    await hooks.register()
    hooks.answer = lambda request: {"allowed": False, "status": {"message": "not today"}}
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"))
    body = answer.body
    assert (answer.code, body["status"]) == (400, "Failure")
    assert body["message"] == 'admission webhook "check.example.com" denied the request: not today'


async def test_deny_without_words(hooks: Hooks) -> None:
    """A denial without words says so."""
    await hooks.register()
    hooks.answer = lambda request: {"allowed": False}
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"))
    assert answer.message == 'admission webhook "check.example.com" denied the request without explanation'


async def test_deny_with_code(hooks: Hooks) -> None:
    """A denial may choose its code and reason."""
    await hooks.register()
    hooks.answer = lambda request: {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": "no"}}
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"))
    answer.refused(403, "Forbidden", 'admission webhook "check.example.com" denied the request: no')


async def test_warnings(hooks: Hooks) -> None:
    """Warnings of a webhook reach the client."""
    await hooks.register()
    hooks.answer = lambda request: {"allowed": True, "warnings": ["mind the gap"]}
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"))
    assert (answer.code, answer.warnings) == (201, '299 - "mind the gap"')


async def test_mutate(hooks: Hooks) -> None:
    """A mutating webhook's patch is applied before the object is checked and stored."""
    await hooks.register("mutating")
    hooks.answer = patching({"op": "add", "path": "/data", "value": {"added": "yes"}})
    await ready(hooks)
    assert (await hooks.api.post(maps(hooks), make.config_map("a"))).ok()["data"] == {"added": "yes"}
    assert (await hooks.api.get(f"{maps(hooks)}/a")).ok()["data"] == {"added": "yes"}


async def test_the_first_status_of_a_pod_follows_mutations(hooks: Hooks) -> None:
    """Gates and requests that a webhook puts in show in the pod's condition and in its quality of service."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "configmaps"], "operations": ["CREATE"]}]
    await hooks.register("mutating", rules=rules)
    gate = {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "example.com/wait"}]}
    asks = {"op": "add", "path": "/spec/containers/0/resources", "value": {"requests": {"cpu": "1"}}}
    mutate = patching(gate, asks)
    hooks.answer = lambda request: mutate(request) if request["kind"]["kind"] == "Pod" else {"allowed": True}
    await ready(hooks)
    path = f"/api/v1/namespaces/{hooks.namespace}/pods"
    status = (await hooks.api.post(path, make.pod("a", hooks.namespace).build())).ok()["status"]
    assert (status["qosClass"], [condition["reason"] for condition in status["conditions"]]) == (
        "Burstable",
        ["SchedulingGated"],
    )


async def test_bad_mutation(hooks: Hooks) -> None:
    """A mutation to something invalid is refused as if the user had sent it."""
    await hooks.register("mutating")
    hooks.answer = patching({"op": "add", "path": "/data", "value": {"a b": "x"}})
    await ready(hooks)
    (await hooks.api.post(maps(hooks), make.config_map("a"))).refused(422, "Invalid")


async def test_mutation_under_dry_run(hooks: Hooks) -> None:
    """A tried write is reviewed as such, mutations included."""
    await hooks.register("mutating")
    hooks.answer = patching({"op": "add", "path": "/data", "value": {"added": "yes"}})
    await ready(hooks)
    body = (await hooks.api.post(maps(hooks), make.config_map("a"), dryRun="All")).ok()
    assert body["data"] == {"added": "yes"}
    assert [each["dryRun"] for each in hooks.reviews] == [True]


async def test_object_selector(hooks: Hooks) -> None:
    """Only objects that the selector matches are reviewed."""
    await hooks.register(objectSelector={"matchLabels": {"on": "yes"}})
    await ready(hooks)
    await hooks.api.post(maps(hooks), make.config_map("plain"))
    labelled = make.config_map("labelled")
    labelled["metadata"]["labels"] = {"on": "yes"}
    await hooks.api.post(maps(hooks), labelled)
    assert [each["name"] for each in hooks.reviews] == ["labelled"]


async def test_match_conditions(hooks: Hooks) -> None:
    """Match conditions decide in CEL whether the webhook is asked."""
    conditions = [
        {"name": "not-skipped", "expression": "!object.metadata.?name.orValue('').startsWith('skip-')"},
        {"name": "by-admin", "expression": "request.userInfo.username == 'admin'"},
    ]
    await hooks.register(matchConditions=conditions)
    await ready(hooks)
    for name in ("skip-me", "take-me"):
        (await hooks.api.post(maps(hooks), make.config_map(name))).ok()
    assert [each["name"] for each in hooks.reviews] == ["take-me"]


async def test_rules(hooks: Hooks) -> None:
    """Only the operations and resources that the rules name are reviewed."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    await hooks.register(rules=[rule])
    await ready(hooks)
    (await hooks.api.post(maps(hooks), make.config_map("a"))).ok()
    (await hooks.api.merge(f"{maps(hooks)}/a", {"data": {"k": "v"}})).ok()
    (await hooks.api.post(f"/api/v1/namespaces/{hooks.namespace}/secrets", {"metadata": {"name": "s"}})).ok()
    assert [(each["operation"], each["resource"]["resource"]) for each in hooks.reviews] == [("CREATE", "configmaps")]


async def test_subresource_rules(hooks: Hooks) -> None:
    """Subresources are reviewed where a rule names them."""
    pods = f"/api/v1/namespaces/{hooks.namespace}/pods"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps", "pods/binding"],
        "operations": ["CREATE"],
    }
    await hooks.register(rules=[rule])
    await ready(hooks)
    (await hooks.api.post(pods, make.pod("a", hooks.namespace).build())).ok()
    (
        await hooks.api.post(f"{pods}/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}})
    ).ok()
    (request,) = hooks.reviews
    assert (request["subResource"], request["kind"]["kind"], request["object"]["target"]["name"]) == (
        "binding",
        "Binding",
        "n",
    )


async def test_failure_policy_fail(hooks: Hooks) -> None:
    """By default a webhook that cannot be reached stops the write with 500."""
    await hooks.register()
    await ready(hooks)
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": "https://127.0.0.1:1/x"}]
    (await hooks.api.json_patch(hooks.path, *patch)).ok()

    body = (
        await hooks.api.repeat(
            lambda: hooks.api.post(maps(hooks), make.config_map("a"), dryRun="All"), lambda answer: answer.code == 500
        )
    ).body
    assert (body["code"], body["reason"]) == (500, "InternalError")
    assert body["message"].startswith(
        'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=10s"'
    )


async def test_failure_policy_ignore(hooks: Hooks) -> None:
    """With Ignore the write goes on without it."""
    await hooks.register(failurePolicy="Ignore", clientConfig={"url": "https://127.0.0.1:1/x"})
    (await hooks.api.post(maps(hooks), make.config_map("a"))).ok()


async def test_defaults_of_registration(hooks: Hooks) -> None:
    """A registration gets the defaults of Kubernetes."""
    await hooks.register()
    (hook,) = (await hooks.api.get(hooks.path)).ok()["webhooks"]
    assert (hook["failurePolicy"], hook["matchPolicy"], hook["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert (hook["objectSelector"], hook["rules"][0]["scope"]) == ({}, "*")
    assert "reinvocationPolicy" not in hook


async def test_order(hooks: Hooks) -> None:
    """Mutations come before checks: the checking webhook sees the mutated object."""
    await hooks.register("mutating")
    first = hooks.path
    hooks.answer = patching({"op": "add", "path": "/data", "value": {"added": "yes"}})
    await ready(hooks)
    await hooks.register("validating")
    await hooks.probe(asked=2)
    assert hooks.reviews[0]["object"].get("data") is None
    assert hooks.reviews[1]["object"]["data"] == {"added": "yes"}
    (await hooks.api.delete(first)).ok()


async def test_options_of_the_request(hooks: Hooks) -> None:
    """A review says what was asked for beside the object."""
    await hooks.register()
    await ready(hooks)
    await hooks.api.post(maps(hooks), make.config_map("a"), fieldManager="me", fieldValidation="Strict")
    await hooks.api.merge(f"{maps(hooks)}/a", {"data": {"k": "w"}}, dryRun="All")
    await hooks.api.delete(f"{maps(hooks)}/a", {"propagationPolicy": "Background"})
    create, update, delete = (review["options"] for review in hooks.reviews)
    assert (create["fieldManager"], create["fieldValidation"]) == ("me", "Strict")
    assert update["dryRun"] == ["All"]
    assert delete["propagationPolicy"] == "Background"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"uid": "x"}, 'received invalid webhook response: expected response.uid="{uid}", got "x"'),
        (
            {"patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            {"patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        (
            {"patch": "ew==", "patchType": "JSONPatch"},
            "received undecodable patch in webhook response: ",
        ),
        ({"patch": "!!", "patchType": "JSONPatch"}, "failed to call webhook: illegal base64 data at input byte 0"),
    ],
)
async def test_an_answer_that_is_none(hooks: Hooks, response: Json, reason: str) -> None:
    """An answer that cannot be used counts as no answer."""
    await hooks.register("mutating")
    hooks.answer = lambda request: {"allowed": True, **response}
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"))
    why = reason.replace("{uid}", hooks.reviews[0]["uid"])
    answer.refused(500, "InternalError")
    assert answer.message.startswith(f'Internal error occurred: failed calling webhook "check.example.com": {why}')


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        (
            {"op": "remove", "path": "/nope"},
            "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
        ),
        ({"op": "test", "path": "/kind", "value": "Pod"}, "testing value /kind failed: test failed"),
        ({"op": "add", "path": "/data", "value": {"x": 1}}, ""),
    ],
)
async def test_a_patch_that_makes_no_object(hooks: Hooks, operation: Json, problem: str) -> None:
    """What a patch breaks is an error of the server, and not of who sent the object."""
    await hooks.register("mutating")
    hooks.answer = patching(operation)
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"))
    answer.refused(500, "InternalError")
    assert answer.message.startswith(f"Internal error occurred: {problem}")


async def test_unknown_fields_of_a_patch_go_without_a_word(hooks: Hooks) -> None:
    """Strictness is about what clients send."""
    await hooks.register("mutating")
    hooks.answer = patching({"op": "add", "path": "/foo", "value": 1})
    await ready(hooks)
    answer = await hooks.api.post(maps(hooks), make.config_map("a"), fieldValidation="Strict")
    assert (answer.code, answer.warnings) == (201, "")
    assert "foo" not in answer.body


async def test_a_condition_that_fails(hooks: Hooks) -> None:
    """A condition that cannot be evaluated refuses the request, unless another one does not hold."""
    failing = {"name": "a", "expression": 'object.data.nope == "x"'}
    other = {"name": "b", "expression": 'object.metadata.name != "b"'}
    await hooks.register(matchConditions=[failing, other])
    why = 'configmaps "a" is forbidden: expression \'object.data.nope == "x"\' resulted in error: no such key: data'

    async def create() -> Answer:
        return await hooks.api.post(maps(hooks), {"metadata": {"name": "a"}}, dryRun="All")

    answer = await hooks.api.repeat(create, lambda answer: answer.code == 403)
    assert answer.message == why
    (await hooks.api.post(maps(hooks), {"metadata": {"name": "b"}}, dryRun="All")).ok()
