"""Parts of a pod with a path of their own: ephemeral containers, resizes, logs and connections."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.evictions import budget, ready_pod
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Api, Json

_AMOUNT = {"cpu": "1", "memory": "1Gi"}


def debugger(name: str = "d", **more: object) -> Json:
    """A patch that adds an ephemeral container."""
    return {"spec": {"ephemeralContainers": [{"name": name, "image": "busybox", **more}]}}


def resized(**resources: Json) -> Json:
    """A patch of the main container's resources."""
    return {"spec": {"containers": [{"name": "main", "resources": resources}]}}


async def test_an_ephemeral_container_is_added(api: Api, namespace: str) -> None:
    """It gets a container's defaults, and counts as a new generation of the pod."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    body = (await api.strategic(f"{pods(namespace)}/a/ephemeralcontainers", debugger(targetContainerName="main"))).ok()
    assert body["spec"]["ephemeralContainers"] == [
        {
            "name": "d",
            "image": "busybox",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
            "targetContainerName": "main",
        }
    ]
    assert body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (debugger("e", targetContainerName="x"), 'spec.ephemeralContainers[0].targetContainerName: Not found: "x"'),
        (debugger("main"), 'spec.ephemeralContainers[0].name: Duplicate value: "main"'),
        (
            debugger("e", resources={"limits": {"cpu": "1"}}),
            "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
        ),
        (
            debugger("e", ports=[{"containerPort": 80}]),
            "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
        ),
        (
            {"spec": {"ephemeralContainers": [{"$patch": "delete", "name": "d"}]}},
            'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed\n',
        ),
    ],
)
async def test_what_an_ephemeral_container_may_not_be(api: Api, namespace: str, patch: Json, problem: str) -> None:
    """Names are unique, targets exist, some fields are not for them, and none goes again."""
    path = f"{pods(namespace)}/a"
    await api.post(pods(namespace), make.pod("a", namespace).build())
    (await api.strategic(f"{path}/ephemeralcontainers", debugger())).ok()
    refused = await api.strategic(f"{path}/ephemeralcontainers", patch)
    refused.refused(422, "Invalid", f'Pod "a" is invalid: {problem}')


async def test_a_resize_changes_resources_alone(api: Api, namespace: str) -> None:
    """Of all that is sent to it, a resize takes CPU and memory."""
    await api.post(pods(namespace), make.pod("a", namespace).request(cpu="2", memory="1Gi").build())
    patch = resized(requests={"cpu": "1"}, limits={"cpu": "1"})
    patch["spec"]["containers"][0]["image"] = "other"
    patch["metadata"] = {"labels": {"x": "y"}}
    body = (await api.strategic(f"{pods(namespace)}/a/resize", patch)).ok()
    container = body["spec"]["containers"][0]
    assert (container["resources"]["requests"]["cpu"], container["image"]) == ("1", "busybox")
    assert (body["metadata"].get("labels"), body["metadata"]["generation"]) == (None, 2)


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (
            resized(requests={"cpu": "1"}),
            'spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing',
        ),
        (
            resized(limits={"nvidia.com/gpu": "1"}, requests={"nvidia.com/gpu": "1"}),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            {
                "spec": {
                    "containers": [
                        {"name": "other", "image": "i", "resources": {"limits": _AMOUNT, "requests": _AMOUNT}}
                    ]
                }
            },
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
    ],
)
async def test_what_a_resize_may_not_do(api: Api, namespace: str, patch: Json, problem: str) -> None:
    """The quality of service, other resources and the set of containers stay."""
    await api.post(pods(namespace), make.pod("a", namespace).request(cpu="2", memory="1Gi").build())
    refused = await api.strategic(f"{pods(namespace)}/a/resize", patch)
    refused.refused(422, "Invalid", f'Pod "a" is invalid: {problem}')


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"sinceSeconds": "0"}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"},
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)
async def test_bad_options_of_logs(api: Api, namespace: str, query: Json, problem: str) -> None:
    """Options of logs are checked like objects."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    refused = await api.get(f"{pods(namespace)}/a/log", **query)
    refused.refused(422, "Invalid", f'PodLogOptions "a" is invalid: {problem}')


@pytest.mark.parametrize("way", ["log", "exec", "attach"])
async def test_the_container_has_to_be_named(api: Api, namespace: str, way: str) -> None:
    """Where there are several, it has to be said which; one that is not there is refused."""
    pod = make.pod("a", namespace).build()
    pod["spec"]["containers"].append({"name": "side", "image": "i"})
    await api.post(pods(namespace), pod)
    method = "GET" if way == "log" else "POST"
    options = {} if way == "log" else {"stdout": "true", "command": "ls"}
    silent = await api.call(method, f"{pods(namespace)}/a/{way}", **options)
    silent.refused(400, "BadRequest", "a container name must be specified for pod a, choose one of: [main side]")
    wrong = await api.call(method, f"{pods(namespace)}/a/{way}", **options, container="x")
    wrong.refused(400, "BadRequest", "container x is not valid for pod a")


async def test_unready_pods_may_always_go_where_the_budget_says_so(api: Api, namespace: str) -> None:
    """With AlwaysAllow, a budget protects ready pods only."""
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    await api.post(budgets, budget("b", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"))
    await ready_pod(api, namespace, "a")
    await api.until(f"{budgets}/b", lambda answer: answer.body["status"].get("currentHealthy") == 1)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    (await api.post(f"{pods(namespace)}/a/eviction", eviction)).refused(429, "TooManyRequests")
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    (await api.strategic(f"{pods(namespace)}/a/status", unready)).ok()
    assert (await api.post(f"{pods(namespace)}/a/eviction", eviction)).code == 201
