"""Pods of one template share what was worked out for the first of them, and nobody can tell."""

from __future__ import annotations

from tests import make

from .conftest import MERGE, PODS, Answer, Asker, Json

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


async def test_the_second_pod_is_like_the_first(ask: Asker) -> None:
    """Specs, statuses and owned fields are the same; each pod has a volume of its own for its token."""
    first, second = [await create(ask, name) for name in ("a", "b")]
    assert same(first.body, second.body)
    assert first["spec"]["volumes"][0]["name"] != second["spec"]["volumes"][0]["name"]
    mounts = second["spec"]["containers"][0]["volumeMounts"]
    assert [mount["name"] for mount in mounts] == [second["spec"]["volumes"][0]["name"]]


async def test_a_change_of_one_pod_is_its_own(ask: Asker) -> None:
    """What happens to a pod later does not reach those that are made after it."""
    first = await create(ask, "a")
    await ask(
        "PATCH", f"{PODS}/a", {"spec": {"terminationGracePeriodSeconds": 5, "activeDeadlineSeconds": 9}}, kind=MERGE
    )
    await ask("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    assert same((await create(ask, "b")).body, first.body)


async def test_a_new_default_class_is_seen(ask: Asker) -> None:
    """A default priority class counts from its creation on, until it goes."""
    before = await create(ask, "a")
    await ask("POST", CLASSES, {"metadata": {"name": "high"}, "value": 7, "globalDefault": True})
    between = await create(ask, "b")
    await ask("DELETE", f"{CLASSES}/high")
    after = await create(ask, "c")
    assert [pod["spec"]["priority"] for pod in (before, between, after)] == [0, 7, 0]


async def test_a_limit_range_holds_from_its_creation_on(ask: Asker) -> None:
    """Known specs are held to new limits."""
    await create(ask, "a")
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
    assert (await ask("POST", PODS, pod)).status == 201
    await ask("DELETE", f"{accounts}/robot")
    pod["metadata"]["name"] = "b"
    refused = await ask("POST", PODS, pod)
    assert (refused.status, 'serviceaccount "robot" not found' in refused.message) == (403, True)


async def test_unknown_fields_are_told_each_time(ask: Asker) -> None:
    """That nobody wanted to hear of an unknown field does not hide it from who does."""
    pod = make.pod("a").build()
    pod["spec"]["nope"] = 1
    assert (await ask("POST", f"{PODS}?fieldValidation=Ignore", pod)).status == 201
    pod["metadata"]["name"] = "b"
    warned = await ask("POST", PODS, pod)
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.nope\\""'
    pod["metadata"]["name"] = "c"
    refused = await ask("POST", f"{PODS}?fieldValidation=Strict", pod)
    assert (refused.status, refused.message.endswith('strict decoding error: unknown field "spec.nope"')) == (400, True)
