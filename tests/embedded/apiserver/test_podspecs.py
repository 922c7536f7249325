"""Pods of one template share what was worked out for the first of them, from the third on, and nobody can tell."""

from __future__ import annotations

import pytest

from tests import make
from tests.embedded.conftest import MERGE, PODS, Answer, Asker, Json

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def same(one: Json, other: Json) -> bool:
    """Whether two pods are alike but for what is theirs alone."""
    return _common(one) == _common(other)


def _common(pod: Json) -> Json:
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ("name", "uid", "resourceVersion")}
    spec = {**pod["spec"], "volumes": None, "containers": [{**pod["spec"]["containers"][0], "volumeMounts": None}]}
    return {**pod, "metadata": metadata, "spec": spec}


async def create(ask: Asker, name: str, query: str = "") -> Answer:
    """A pod of the template."""
    return await ask("POST", PODS + query, make.pod(name).gpus(1).build())


async def known(ask: Asker) -> Answer:
    """The first of two pods of the template, which make it known."""
    first, _ = [await create(ask, name) for name in ("first", "second")]
    return first


async def test_later_pods_are_like_the_first(ask: Asker) -> None:
    """Specs, statuses and owned fields are the same; each pod has a volume of its own for its token."""
    first, third = await known(ask), await create(ask, "a")
    assert same(first.body, third.body)
    assert first["spec"]["volumes"][0]["name"] != third["spec"]["volumes"][0]["name"]
    mounts = third["spec"]["containers"][0]["volumeMounts"]
    assert [mount["name"] for mount in mounts] == [third["spec"]["volumes"][0]["name"]]


async def test_fields_come_in_the_same_order(ask: Asker) -> None:
    """What is written is the same text, not only the same data."""
    first, third = await known(ask), await create(ask, "a")
    assert [list(pod["spec"]) for pod in (first, third)] == [list(first["spec"])] * 2
    assert str(_common(first.body)) == str(_common(third.body))


@pytest.mark.parametrize(
    "special",
    [
        {"automountServiceAccountToken": False},
        {"schedulingGates": [{"name": "example.com/gate"}]},
        {"initContainers": [{"name": "init", "image": "busybox"}]},
        {"volumes": [{"name": "scratch", "emptyDir": {}}]},
    ],
    ids=lambda special: next(iter(special)),
)
async def test_every_kind_of_spec_can_be_shared(ask: Asker, special: Json) -> None:
    """Pods without a token, with gates, with init containers or volumes of their own."""
    pods = []
    for name in "abcd":
        pod = make.pod(name).build()
        pod["spec"] |= special
        pods.append((await ask("POST", PODS, pod)).body)
    plain = [_named(pod) for pod in pods]
    assert plain == [plain[0]] * 4


def _named(pod: Json) -> str:
    """A pod as text with the name of its token's volume, and what is its own in metadata, made the same."""
    volumes = [volume["name"] for volume in pod["spec"].get("volumes", ()) if volume["name"].startswith("kube-api-")]
    text = str({"spec": pod["spec"], "status": pod["status"], "owned": pod["metadata"]["managedFields"]})
    return text.replace(volumes[0], "token") if volumes else text


async def test_a_quota_counts_shared_specs(ask: Asker) -> None:
    """What a known spec asks for is held against a quota."""
    await known(ask)
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "3"}}}
    await ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    assert [(await create(ask, name)).status for name in "ab"] == [201, 403]


async def test_a_policy_sees_shared_specs(ask: Asker) -> None:
    """Who checks pods is shown the whole of them, with the token's volume and who owns what."""
    await known(ask)
    seen = "has(object.spec.volumes) && 'f:containers' in object.metadata.managedFields[0].fieldsV1['f:spec']"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    group = "/apis/admissionregistration.k8s.io/v1"
    policy = {
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": f"!({seen})"}]},
    }
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    await ask("POST", f"{group}/validatingadmissionpolicies", policy)
    await ask("POST", f"{group}/validatingadmissionpolicybindings", binding)
    refused = await create(ask, "a")
    assert (refused.status, refused.message.endswith(f"failed expression: !({seen})")) == (422, True)


async def test_a_change_of_one_pod_is_its_own(ask: Asker) -> None:
    """What happens to a pod later does not reach those that are made after it."""
    await known(ask)
    first = await create(ask, "a")
    await ask(
        "PATCH", f"{PODS}/a", {"spec": {"terminationGracePeriodSeconds": 5, "activeDeadlineSeconds": 9}}, kind=MERGE
    )
    await ask("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    assert same((await create(ask, "b")).body, first.body)


async def test_a_new_default_class_is_seen(ask: Asker) -> None:
    """A default priority class counts from its creation on, until it goes."""
    await known(ask)
    before = await create(ask, "a")
    await ask("POST", CLASSES, {"metadata": {"name": "high"}, "value": 7, "globalDefault": True})
    between = await create(ask, "b")
    await ask("DELETE", f"{CLASSES}/high")
    after = await create(ask, "c")
    assert [pod["spec"]["priority"] for pod in (before, between, after)] == [0, 7, 0]


async def test_a_limit_range_holds_from_its_creation_on(ask: Asker) -> None:
    """Known specs are held to new limits."""
    await known(ask)
    limit = {"type": "Container", "max": {"nvidia.com/gpu": "0"}}
    await ask(
        "POST", "/api/v1/namespaces/default/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}
    )
    assert (await create(ask, "b")).message == (
        'pods "b" is forbidden: maximum nvidia.com/gpu usage per Container is 0, but limit is 1'
    )


async def test_an_account_that_is_gone_is_missed(ask: Asker) -> None:
    """Every pod's account is looked up."""
    pod = make.pod("a").build()
    pod["spec"]["serviceAccountName"] = "robot"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await ask("POST", accounts, {"metadata": {"name": "robot"}})
    for name in "abc":
        pod["metadata"]["name"] = name
        assert (await ask("POST", PODS, pod)).status == 201
    await ask("DELETE", f"{accounts}/robot")
    pod["metadata"]["name"] = "d"
    refused = await ask("POST", PODS, pod)
    assert (refused.status, 'serviceaccount "robot" not found' in refused.message) == (403, True)


async def test_unknown_fields_are_told_each_time(ask: Asker) -> None:
    """That nobody wanted to hear of an unknown field does not hide it from who does."""
    pod = make.pod("a").build()
    pod["spec"]["nope"] = 1
    for name in "abc":
        pod["metadata"]["name"] = name
        assert (await ask("POST", f"{PODS}?fieldValidation=Ignore", pod)).status == 201
    for name in "def":
        pod["metadata"]["name"] = name
        warned = await ask("POST", PODS, pod)
        assert warned.headers["warning"] == '299 - "unknown field \\"spec.nope\\""'
    pod["metadata"]["name"] = "g"
    refused = await ask("POST", f"{PODS}?fieldValidation=Strict", pod)
    assert (refused.status, refused.message.endswith('strict decoding error: unknown field "spec.nope"')) == (400, True)
